#!/usr/bin/env node
/**
 * The program `runchart`. Rule: a command answers its exit code; what it throws is said on standard error, and ends as
 * usage (2) where the caller can mend it, else as an error (1).
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { ConfigurationError } from '../errors.ts';
import { interrupts } from './input.ts';
import type { ReplayOptions } from './replay/replayCommand.ts';
import type { RunOptions } from './runCommand.ts';
import { printable } from './screen.ts';
import type { ServeOptions } from './serveCommand.ts';

const { version, description } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string; description: string };

const RUN_HELP = `
The reply goes to standard output, the steps to standard error. Text piped in is joined to the prompt.
Key and address of the server are read from OPENAI_API_KEY and OPENAI_BASE_URL.
Without a prompt, --session goes on with what waits for a decision or was interrupted. A run without --session begins one
under a name of its own and tells it; --new --session begins one under yours.
Sessions are kept in $XDG_STATE_HOME/runchart, or ~/.local/state/runchart.

Exit codes: 0 completed, 1 error, 2 usage and an unknown session, 3 a call waits for a decision, 130 cancelled.`;

const REPLAY_HELP = `
The log is read and nothing else: it may be damaged, torn, or in use. What cannot be read is told on standard error.
A file without a header is taken as wire events of another backend, one JSON object a line.

Exit codes: 0 shown, 1 the file is no log or cannot be read, 2 usage and an unknown session, 130 interrupted.`;

const SERVE_HELP = `
It tells its address, and a token that it makes, as one JSON line on standard output. RUNCHART_TOKEN sets the token instead.
Requests carry it as Authorization: Bearer; an EventSource, which cannot, as ?token= of the events.
Who can reach the server and has the token can have commands run, as far as they are approved over the same way.

Exit codes: 0 ended by a signal (with --stdio: the input has ended and what was asked is done), 1 error, 2 usage,
130 with --stdio: ended by a signal.`;

function program(signal: AbortSignal, exit: (code: number) => void): Command {
  const root = new Command('runchart')
    .description(description)
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(printable(text)) });
  root
    .command('run')
    .description(
      'send one request to a model, with tools that read the working directory, and commands that you approve',
    )
    .argument('[prompt...]', 'what to ask')
    .addOption(new Option('-m, --model <name>', 'the model, as its server knows it').env('OPENAI_MODEL'))
    .option(
      '--session <id>',
      'the session to go on with; one that is not there is an error, which names those that are near',
    )
    .option('--new', 'begin the session that --session names')
    .option('--cwd <directory>', 'where the tools work (default: the current directory)')
    .option('--json', 'print the entries of the log as JSON lines, each once it is durable')
    .addHelpText('after', RUN_HELP)
    .action(async (words: string[], options: RunOptions) => {
      const { runCommand } = await import('./runCommand.ts');
      exit(await runCommand(words.join(' '), options, signal));
    });
  root
    .command('replay')
    .description('show a stored log: the requests with their steps, or with the rounds of the model')
    .argument('<log>', 'a .jsonl file, or the id of a session')
    .option('--rounds', 'show each request as the rounds in which the model was served')
    .option('--json', 'print the view as one JSON document')
    .addHelpText('after', REPLAY_HELP)
    .action(async (log: string, options: ReplayOptions) => {
      const { replayCommand } = await import('./replay/replayCommand.ts');
      const { outputTo } = await import('./screen.ts');
      const outputs = { shown: outputTo(process.stdout), notes: outputTo(process.stderr) };
      exit(await replayCommand(log, options, outputs, signal));
    });
  serveCommandOf(root, signal, exit);
  root
    .command('demo')
    .description('see it work: a scripted model in a process of its own, real tools, a real log')
    .action(async () => {
      const { demoCommand } = await import('./demo/demoCommand.ts');
      exit(await demoCommand(signal));
    });
  root
    .command('charts')
    .description('draw the charts as mermaid: all of them as Markdown, or one by its id')
    .argument('[id]', 'RUN, for example')
    .action(async (id: string | undefined) => {
      const { chartsCommand } = await import('./chartsCommand.ts');
      chartsCommand(id, (text) => void process.stdout.write(text));
    });
  return root;
}

function serveCommandOf(root: Command, signal: AbortSignal, exit: (code: number) => void): void {
  root
    .command('serve')
    .description('serve sessions to other programs over HTTP and server-sent events')
    .addOption(new Option('-m, --model <name>', 'the model, as its server knows it').env('OPENAI_MODEL'))
    .option('--cwd <directory>', 'where the tools work (default: the current directory)')
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .option('--port <number>', 'the port; 0 for any that is free', '0')
    .option('--stdio', 'requests and events as JSON lines on standard input and output, without a port')
    .option('--origin <url...>', 'origins of pages that may ask')
    .addHelpText('after', SERVE_HELP)
    .action(async (options: ServeOptions) => {
      const { serveCommand } = await import('./serveCommand.ts');
      exit(await serveCommand(options, signal));
    });
}

async function main(): Promise<number> {
  let code = 0;
  try {
    await program(interrupts(), (answered) => {
      code = answered;
    }).parseAsync();
    return code;
  } catch (error) {
    // Commander has said what is wrong.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const said = error instanceof Error ? error.message : String(error);
    process.stderr.write(`runchart: ${printable(said)}\n`);
    return error instanceof ConfigurationError ? 2 : 1;
  }
}

/** Resolves once what was written is out. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve());
  });

const code = await main();
await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
// A tool that does not end when it is told to must not keep the process.
process.exit(code);
