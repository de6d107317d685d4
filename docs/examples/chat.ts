/**
 * A chat on the terminal against any OpenAI-compatible endpoint. It wants OPENAI_API_KEY, OPENAI_BASE_URL where the
 * endpoint is not the vendor's own, OPENAI_MODEL, and the package `openai`. Ctrl-C ends a reply, and the chat where none is
 * under way (exit code 130); Ctrl-D ends both (0). Questions may be piped in, one a line: each gets its whole reply.
 */
import { createInterface } from 'node:readline';
// #region chat
import { createAgent } from 'runchart';
import { codingTools, jsonlStore } from 'runchart/node';
import { openai } from 'runchart/openai';

const agent = createAgent({
  model: openai(process.env.OPENAI_MODEL ?? 'gpt-5.2'),
  instructions: 'You explain the files of the current directory.',
  tools: codingTools().filter(({ name }) => !['Bash', 'Write', 'Edit'].includes(name)),
  store: jsonlStore('.runchart'),
});
// #endregion
const conversation = await agent.open('chat');
conversation.live$.subscribe((signal) => {
  if (signal.type === 'text-delta') process.stdout.write(signal.text);
});

const { stdin, stdout } = process;
const terminal = createInterface({ input: stdin, output: stdout, prompt: '\n> ' });
let open = true;
terminal.once('close', () => {
  open = false;
  if (stdin.isTTY) void conversation.cancel();
});
function interrupt(): void {
  if (conversation.status !== 'active' || !open || !stdin.isTTY) {
    process.exitCode = 130;
    terminal.close();
  }
  void conversation.cancel();
}
// The one is the key while the terminal is read, the other a signal from elsewhere.
terminal.on('SIGINT', interrupt);
process.on('SIGINT', interrupt);

try {
  terminal.prompt();
  for await (const question of terminal) {
    if (question !== '') {
      const { error } = await conversation.send(question).result;
      if (error) console.error(error.message);
    }
    if (open) terminal.prompt();
  }
} finally {
  terminal.close();
  await agent.close();
}
