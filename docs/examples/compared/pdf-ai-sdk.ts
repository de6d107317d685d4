/** A PDF that a model reads. */
import { readFile } from 'node:fs/promises';
import { openai } from '@ai-sdk/openai';
import { generateText } from 'ai';

const { text } = await generateText({
  model: openai('gpt-5.2'),
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Sum up the report.' },
        { type: 'file', mediaType: 'application/pdf', filename: 'report.pdf', data: await readFile('report.pdf') },
      ],
    },
  ],
});
console.log(text);
