/** A PDF that a model reads. */
import { readFile } from 'node:fs/promises';
import { createAgent } from 'runchart';
import { openai } from 'runchart/openai';

// #region pdf
const agent = createAgent({ model: openai('gpt-5.2') });
const { text } = await agent.run([
  { type: 'text', text: 'Sum up the report.' },
  { type: 'file', mediaType: 'application/pdf', name: 'report.pdf', data: await readFile('report.pdf') },
]);
console.log(text);
// #endregion
