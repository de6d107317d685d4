#!/usr/bin/env node
/**
 * The program `runchart`. Invariant: a command resolves to its exit code. Its errors go to standard error and end as
 * usage (2) if the caller can fix them, else as an error.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { printable } from '../printable.ts';
import type { AgentOptions } from './codingAgent.ts';
import type { DemoOptions } from './demo/demoCommand.ts';
import { EXIT_CODES, exitCodeOfError, USAGE } from './exitCodes.ts';
import type { InspectOptions } from './inspectCommand.ts';
import type { InteractiveOptions } from './interactive/interactiveCommand.ts';
import { interrupts, type OwnInterrupt } from './personInput.ts';
import type { ReplayOptions } from './replay/replayCommand.ts';
import type { RunOptions } from './runCommand.ts';
import type { ServeOptions } from './serveCommand.ts';
import type { SessionsOptions } from './sessions/sessionsCommand.ts';

const { version, description } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string; description: string };

const HELP = `
Alone on a terminal, runchart is a conversation: /help says what can be typed. A prompt in quotes is its first message. With -p, or with text piped in, it is one request:
the reply goes to standard output, the steps to standard error, text piped in is joined to the prompt. What the rules ask about
is asked on the terminal; without one it is denied.
Key and address of the server are read from OPENAI_API_KEY and OPENAI_BASE_URL, or those of --provider.
Sessions are kept in $XDG_STATE_HOME/runchart, or ~/.local/state/runchart, or where --store says:
a directory, or a SQLite file (--store sqlite:sessions.db, from Node 22.13).

${EXIT_CODES}`;

const RUN_HELP = `
The reply goes to standard output, the steps to standard error. Text piped in is joined to the prompt.
Without a prompt, --session goes on with what waits for a decision or was interrupted. A run without --session begins one
under a name of its own and tells it; --new --session begins one under yours.
Where there is no terminal, a call that the rules ask about waits, and the exit code is 3.

${EXIT_CODES}`;

const ACP_HELP = `
An editor starts it and speaks with it over standard input and output: the Agent Client Protocol, version 1. Each session
works in the directory that the editor names. See docs/editors.md for the settings of editors.

Exit codes: 0 the editor has closed the input, 1 error, 2 usage, 130 ended by a signal.`;

const REPLAY_HELP = `
The log is read and nothing else: it may be damaged, torn, or in use. What cannot be read is told on standard error.
A file without a header is taken as wire events of another backend, one JSON object a line.

Exit codes: 0 shown, 1 the file is no log or cannot be read, 2 usage and an unknown session, 130 interrupted.`;

const SERVE_HELP = `
It tells its address, and a token that it makes, as one JSON line on standard output. RUNCHART_TOKEN sets the token instead.
Requests carry it as Authorization: Bearer; an EventSource, which cannot, as ?token= of the events.
Who can reach the server and has the token can have commands run, as far as the rules allow or they are approved over the same way.

Exit codes: 0 ended by a signal (with --stdio: the input has ended and what was asked is done), 1 error, 2 usage,
130 with --stdio: ended by a signal.`;

/** Collects the values of an option that can be repeated. */
const collected = (value: string, before: string[] = []): string[] => [...before, value];
const STORE = ['--store <place>', 'where sessions are kept: a directory, or sqlite:<file>'] as const;

/** The options of every command that runs the agent. */
function agentOptions(command: Command): Command {
  return command
    .addOption(new Option('-m, --model <name>', 'the model, as its server knows it').env('OPENAI_MODEL'))
    .option('--provider <name>', 'openai, openai-responses, anthropic, google, or a package like @ai-sdk/mistral')
    .option('--context-window <tokens>', 'what the model takes, like 200k, where it is not known')
    .option('--prices <in,out>', 'USD for a million tokens of the model, like 1.25,10')
    .option('--cwd <directory>', 'where the tools work (default: the current directory)')
    .option(...STORE)
    .option('--permission-mode <mode>', 'default, acceptEdits, plan, dontAsk or bypass')
    .option('--allow <rule>', "a call that needs no asking, like 'bash(npm test *)'; may be given again", collected)
    .option('--deny <rule>', "a call that never runs, like 'read(**/.env)'; may be given again", collected)
    .option('--max-turns <number>', 'model calls a request may take')
    .option('--max-budget-usd <amount>', 'what the session may cost')
    .option('--inspect', 'show what happens in a page of this machine, and tell its address')
    .option('--control', 'with --inspect: decide, cancel and send from the page, too');
}

interface Invocation {
  signal: AbortSignal;
  own: OwnInterrupt;
  exit(code: number): void;
}

function program(invocation: Invocation): Command {
  const root = new Command('runchart')
    .description(description)
    .version(version)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(printable(text)) });
  interactive(root, invocation);
  run(root, invocation);
  serve(root, invocation);
  acp(root, invocation);
  sessions(root, invocation);
  replay(root, invocation);
  standalone(root, invocation);
  return root;
}

interface RootOptions extends InteractiveOptions, RunOptions {
  print?: string[] | true;
}

function interactive(root: Command, { signal, own, exit }: Invocation): void {
  agentOptions(root)
    .option('-p, --print [prompt...]', 'answer one request and end')
    .option('--json', 'with -p: print what a transport carries, as JSON lines')
    .option('-c, --continue', 'go on with the latest session of this directory')
    .option('-r, --resume [id]', 'go on with this session; without an id, choose one')
    .argument('[prompt...]', 'the first message, in quotes')
    .addHelpText('after', HELP)
    .action(async (operands: string[], options: RootOptions) => {
      const prompt = operands.join(' ');
      const { print } = options;
      // A single word without -p is more likely a mistyped command.
      if (print === undefined && prompt !== '' && !/\s/.test(prompt))
        root.error(`error: unknown command '${prompt}'. To send it as a message: runchart -p '${prompt}'`);
      const isOneShot = print !== undefined || options.json || !process.stdin.isTTY;
      if (isOneShot) {
        const { runCommand } = await import('./runCommand.ts');
        const words = [...(Array.isArray(print) ? print : []), ...(prompt === '' ? [] : [prompt])].join(' ');
        exit(await runCommand(words, options, { json: 'messages', unasked: 'denied' }, signal));
      } else {
        const { interactiveCommand } = await import('./interactive/interactiveCommand.ts');
        exit(await interactiveCommand({ ...options, prompt }, signal, own));
      }
    });
}

function run(root: Command, { signal, exit }: Invocation): void {
  agentOptions(root.command('run'))
    .description('send one request to a model; what needs a decision and finds nobody to ask waits in the session')
    .argument('[prompt...]', 'what to ask')
    .option(
      '--session <id>',
      'the session to go on with; one that is not there is an error, which names those that are near',
    )
    .option('--new', 'begin the session that --session names')
    .option('--json', 'print the entries of the log as JSON lines, each once it is durable')
    .addHelpText('after', RUN_HELP)
    .action(async (words: string[], options: RunOptions) => {
      const { runCommand } = await import('./runCommand.ts');
      exit(await runCommand(words.join(' '), options, { json: 'entries', unasked: 'waits' }, signal));
    });
}

function serve(root: Command, { signal, exit }: Invocation): void {
  agentOptions(root.command('serve'))
    .description('serve sessions to other programs over HTTP and server-sent events')
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

function acp(root: Command, { signal, exit }: Invocation): void {
  agentOptions(root.command('acp'))
    .description('be the agent of an editor, by the Agent Client Protocol on standard input and output')
    .addHelpText('after', ACP_HELP)
    .action(async (options: AgentOptions) => {
      const { acpCommand } = await import('./acp/acpCommand.ts');
      exit(await acpCommand(options, version, signal));
    });
}

function sessions(root: Command, { exit }: Invocation): void {
  const screens = async () => {
    const { outputTo, Screen } = await import('./screen.ts');
    return new Screen({ reply: outputTo(process.stdout), steps: outputTo(process.stderr) });
  };
  root
    .command('sessions')
    .description('list the sessions of this directory, the latest first')
    .option('--all', 'those of every directory')
    .option('--cwd <directory>', 'those of another directory')
    .option('--ids', 'nothing but their ids, those that need no quotes in a shell')
    .option('--json', 'one JSON object a line')
    .option(...STORE)
    .action(async (options: SessionsOptions) => {
      const { sessionsCommand } = await import('./sessions/sessionsCommand.ts');
      exit(await sessionsCommand(options, await screens(), Date.now()));
    });
  root
    .command('rm')
    .description('remove sessions for good')
    .argument('<id...>', 'their ids')
    .option(...STORE)
    .action(async (ids: string[], { store }: { store?: string }) => {
      const { removeCommand } = await import('./sessions/sessionsCommand.ts');
      exit(await removeCommand(ids, store, await screens()));
    });
}

function replay(root: Command, { signal, exit }: Invocation): void {
  root
    .command('replay')
    .description('show a stored log: the requests with their steps, or with the rounds of the model')
    .argument('<log>', 'a .jsonl file, or the id of a session')
    .option('--rounds', 'show each request as the rounds in which the model was served')
    .option('--json', 'print the view as one JSON document')
    .option(...STORE)
    .option('--as-test', 'print a vitest file that tells the story of the log again, on an agent of yours')
    .addHelpText('after', REPLAY_HELP)
    .action(async (log: string, options: ReplayOptions) => {
      const { replayCommand } = await import('./replay/replayCommand.ts');
      const { outputTo } = await import('./screen.ts');
      const outputs = { shown: outputTo(process.stdout), notes: outputTo(process.stderr) };
      exit(await replayCommand(log, options, outputs, signal));
    });
}

/** Commands that need no session. */
function standalone(root: Command, { signal, exit }: Invocation): void {
  root
    .command('demo')
    .description('see it work: a scripted model in a process of its own, real tools, a real log')
    .option('--inspect', 'leave the decision to the page, and stay until it is closed with Ctrl-C')
    .action(async (options: DemoOptions) => {
      const { demoCommand } = await import('./demo/demoCommand.ts');
      exit(await demoCommand(options, signal));
    });
  root
    .command('inspect')
    .description('show a stored log in a page of this machine, until Ctrl-C')
    .argument('<log>', 'a .jsonl file, or the id of a session')
    .option('--port <number>', 'the port (default: any that is free)')
    .option('--open', 'open the page in the browser')
    .option(...STORE)
    .action(async (log: string, options: InspectOptions) => {
      const { inspectCommand } = await import('./inspectCommand.ts');
      exit(await inspectCommand(log, options, signal));
    });
  root
    .command('charts')
    .description('draw the charts as mermaid: all of them as Markdown, or one by its id')
    .argument('[id]', 'RUN, for example')
    .option('--svg', 'draw one as SVG, laid out as in the inspector (default: RUN)')
    .action(async (id: string | undefined, { svg }: { svg?: true }) => {
      const { chartsCommand, chartPicture } = await import('./chartsCommand.ts');
      const write = (text: string): void => void process.stdout.write(text);
      if (svg) await chartPicture(id ?? 'RUN', write);
      else chartsCommand(id, write);
    });
  root
    .command('trust')
    .description("let the project's configuration files count in full, as they are now")
    .option('--cwd <directory>', 'the project (default: the current directory)')
    .action(async ({ cwd }: { cwd?: string }) => {
      const { trustCommand } = await import('./trustCommand.ts');
      await trustCommand(cwd, (text) => void process.stdout.write(text));
    });
  root
    .command('completion')
    .description('print a script that completes commands, options and ids of sessions')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async (shell: string) => {
      const { completionScript } = await import('./sessions/completion.ts');
      process.stdout.write(completionScript(shell, root));
    });
}

async function main(): Promise<number> {
  let code = 0;
  const exit = (exitCode: number): void => {
    code = exitCode;
  };
  try {
    const own: OwnInterrupt = {};
    await program({ signal: interrupts(own), own, exit }).parseAsync();
    return code;
  } catch (error) {
    // Commander has already printed the error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    const errorMessage = error instanceof Error ? error.message : String(error);
    process.stderr.write(`runchart: ${printable(errorMessage)}\n`);
    return exitCodeOfError(error);
  }
}

/** Resolves when everything has been written. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve());
  });

const code = await main();
await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
// A tool that ignores cancellation must not keep the process alive.
process.exit(code);
