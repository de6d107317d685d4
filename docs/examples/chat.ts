/**
 * A chat on the terminal against any OpenAI-compatible endpoint. It wants OPENAI_API_KEY, OPENAI_BASE_URL where the
 * endpoint is not the vendor's own, OPENAI_MODEL, and the package `openai`.
 */
import { createInterface } from 'node:readline/promises';
import { createAgent } from 'runchart';
import { codingTools, jsonlStore } from 'runchart/node';
import { openai } from 'runchart/openai';

// #region chat
const agent = createAgent({
  model: openai(process.env.OPENAI_MODEL ?? 'gpt-5.2'),
  instructions: 'You explain the files of the current directory.',
  tools: codingTools().filter(({ name }) => name !== 'Bash'),
  store: jsonlStore('.runchart'),
});
// #endregion
const conversation = await agent.open('chat');
conversation.live$.subscribe((signal) => {
  if (signal.type === 'text-delta') process.stdout.write(signal.text);
});

const terminal = createInterface({ input: process.stdin, output: process.stdout });
terminal.on('SIGINT', () => void conversation.cancel());
try {
  for (;;) {
    const question = await terminal.question('\n> ');
    if (question === '') break;
    const result = await conversation.send(question).result;
    if (result.error) console.error(result.error.message);
  }
} finally {
  terminal.close();
  await agent.close();
}
