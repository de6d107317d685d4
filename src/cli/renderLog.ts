/**
 * Renders entries and live signals as lines, and follows a conversation: as steps for a person, as entries for a
 * program. Invariant: each entry is shown once it is durable. A signal only shows it sooner, and streamed text is not
 * shown again with its entry. With JSON, standard output contains only entries.
 */

import type { AgentItem, LogEntry, StoredPart } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { RunResult } from '../conversation/run.ts';
import type { Live } from '../live.ts';
import { jsonLine, shortened } from '../printable.ts';
import type { LogStore } from '../stores/logStore.ts';
import type { Outgoing } from '../transports/index.ts';
import { terminalLine } from '../words/entryWords.ts';
import { firstLine } from '../words/formats.ts';
import { count, emptyTally, type Tally, tallyText, withReply } from './costTally.ts';
import type { Output, Screen, Style } from './screen.ts';

const TEXT_MAX = 200;
const ARGS_MAX = 120;
const RESULT_MAX = 100;

type Of<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;

export class Renderer {
  readonly #screen: Screen;
  readonly #names = new Map<string, string>();
  /** The parts of the current reply that were streamed. */
  #streamed = { assistant: false, reasoning: false };
  /** The sums of the current request, and of everything shown. */
  #request: Tally = emptyTally;
  #total: Tally = emptyTally;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  get total(): Tally {
    return this.#total;
  }

  /** Keeps the name of a call in an entry that is not shown. */
  recall(entry: LogEntry): void {
    if (entry.type !== 'agent-output' || entry.item.type !== 'tool-call') return;
    this.#names.set(entry.item.callId, entry.item.name);
  }

  /** Signals of a sub-agent are ignored, because its call shows the result. */
  signal(signal: Live): void {
    if (signal.path) return;
    if (signal.type === 'text-delta') {
      this.#streamed.assistant = true;
      this.#screen.reply(signal.text);
    } else if (signal.type === 'reasoning-delta') {
      this.#streamed.reasoning = true;
      this.#screen.reasoning(signal.text);
    } else if (signal.type === 'reset') {
      const shown = this.#streamed.assistant || this.#streamed.reasoning;
      this.#clearStreamed();
      if (shown) this.#screen.line(['yellow', '↻ the reply broke off: what was shown of it does not count']);
    }
  }

  entry(entry: LogEntry): void {
    switch (entry.type) {
      case 'user-message':
        return this.#user(entry);
      case 'agent-output':
        return this.#item(entry.item);
      case 'model-reply':
        this.#clearStreamed();
        this.#request = withReply(this.#request, entry);
        this.#total = withReply(this.#total, entry);
        return this.#screen.endLine();
      case 'tool-result':
        return this.#result(entry);
      case 'tool-suspended':
        return this.#step('yellow', `  ⏸ ${this.#name(entry.callId)} waits: ${entry.reason}`);
      case 'decision':
        return this.#step('plain', `  · ${entry.decision.action}: ${this.#name(entry.callId)}`);
      case 'run-started':
        this.#request = emptyTally;
        return;
      case 'run-resumed':
        return this.#step('dim', '▶ goes on');
      case 'run-suspended':
        return this.#step('yellow', `⏸ suspended: ${count(entry.waiting.length, 'call')} to decide`);
      case 'run-stop':
        return this.#stop(entry);
      case 'message-queued':
        return this.#step('dim', `+ queued (${entry.kind}): ${firstLine(messageText(entry.content), TEXT_MAX)}`);
      default: {
        const line = terminalLine(entry);
        return line && this.#step(line.style, line.text);
      }
    }
  }

  #user({ kind, content }: Of<'user-message'>): void {
    const mark = kind === 'direct' ? '>' : `> (${kind})`;
    this.#screen.line(['cyan', `${mark} `], ['bold', firstLine(messageText(content), TEXT_MAX)]);
  }

  #item(item: AgentItem): void {
    if (item.type === 'tool-call') {
      const { callId, name, args, argsText } = item;
      this.#names.set(callId, name);
      const argumentText = argsText ?? JSON.stringify(args);
      return this.#screen.line(['cyan', '→ '], ['bold', name], ['dim', ` ${shortened(argumentText, ARGS_MAX)}`]);
    }
    if (this.#streamed[item.type]) return;
    if (item.type === 'assistant') this.#screen.reply(item.text);
    else this.#screen.reasoning(item.text);
    this.#screen.endLine();
  }

  #result({ callId, outcome, content, code }: Of<'tool-result'>): void {
    const name = this.#name(callId);
    const summary = resultText(content);
    if (outcome === 'succeeded') return this.#screen.line(['green', '  ✓ '], ['plain', name], ['dim', ` ${summary}`]);
    this.#screen.line(['red', '  ✗ '], ['plain', `${name} (${outcomeText(outcome, code)})`], ['dim', ` ${summary}`]);
  }

  #stop({ reason, cause }: Of<'run-stop'>): void {
    const style = reason === 'completed' ? 'green' : reason === 'interrupted' ? 'yellow' : 'red';
    const why = cause === undefined || cause === 'end_turn' ? reason : `${reason} (${cause})`;
    const spent = this.#request.turns === 0 ? '' : ` · ${tallyText(this.#request)}`;
    this.#screen.line([style, `■ ${why}`], ['dim', spent]);
  }

  #step(style: Style, text: string): void {
    this.#screen.line([style, text]);
  }

  #name(callId: string): string {
    return this.#names.get(callId) ?? callId;
  }

  #clearStreamed(): void {
    this.#streamed = { assistant: false, reasoning: false };
  }
}

/** A code that only repeats the outcome is left out. */
export const outcomeText = (outcome: string, code: string | undefined): string =>
  code === undefined || code === outcome ? outcome : `${outcome}, ${code}`;

const NOTHING = 'no output';

/** The texts of the content, without images and files. */
export const joinedText = (content: readonly StoredPart[], separator = '\n'): string =>
  content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(separator);

/** The texts of a message below each other. An empty one adds no line. */
const messageText = (content: readonly StoredPart[]): string =>
  joinedText(content.filter((part) => part.type !== 'text' || part.text !== ''));

/** Returns the size of a result. */
export function sizeText(content: readonly StoredPart[]): string {
  const text = joinedText(content);
  const attached = (['image', 'file'] as const).flatMap((kind) => {
    const { length } = content.filter(({ type }) => type === kind);
    return length === 0 ? [] : [count(length, kind)];
  });
  if (text === '' && attached.length === 0) return NOTHING;
  const lines = text === '' ? 0 : text.replace(/\n$/, '').split('\n').length;
  return [count(lines, 'line'), bytesText(Buffer.byteLength(text)), ...attached].join(', ');
}

/** Returns the size of a result, and its first line. */
export function resultText(content: readonly StoredPart[]): string {
  const size = sizeText(content);
  return content.length === 0 || size === NOTHING
    ? size
    : `${size}: ${firstLine(joinedText(content).trimStart(), RESULT_MAX)}`;
}

const bytesText = (bytes: number): string => (bytes < 1_000 ? `${bytes} B` : `${(bytes / 1_000).toFixed(1)} kB`);

export function followAsSteps(conversation: Conversation, from: number, screen: Screen): Renderer {
  const renderer = new Renderer(screen);
  for (const entry of conversation.log().slice(0, from)) renderer.recall(entry);
  conversation.live$.subscribe((signal) => renderer.signal(signal));
  conversation.log$(from).subscribe((entry) => renderer.entry(entry));
  return renderer;
}

export function followAsJson(conversation: Conversation, from: number, output: Output): void {
  conversation.log$(from).subscribe((entry) => output.write(`${jsonLine(entry)}\n`));
}

/**
 * Writes the messages of a transport about a conversation, one JSON object a line. Call the returned function with the
 * last result.
 */
export function followAsMessages(
  conversation: Conversation,
  from: number,
  output: Output,
  about: { model: string; tools: readonly string[]; permissionMode: string },
): (result: RunResult) => void {
  const { id, cwd } = conversation;
  const write = (message: Outgoing): void => output.write(`${jsonLine(message)}\n`);
  write({ type: 'system-init', version: 1, conversation: id, cwd, ...about });
  conversation.live$.subscribe((signal) => write({ type: 'live', conversation: id, signal }));
  conversation.log$(from).subscribe((entry) => write({ type: 'entry', conversation: id, entry }));
  return ({ subtype, text, turns, costUsd, cause, termination }) => {
    const exitReason = cause ?? termination;
    write({ type: 'result', conversation: id, subtype, result: text, turns, costUsd, exitReason });
  };
}

/** A store that records how long a log was when it was opened, before any repair. */
export function countingStore(store: LogStore): LogStore & { readonly entriesAtOpen: number } {
  let count = 0;
  return {
    list: (options) => store.list(options),
    delete: (id) => store.delete(id),
    async open(id, options) {
      const handle = await store.open(id, options);
      for await (const entry of handle.read()) count = entry.seq + 1;
      return handle;
    },
    get entriesAtOpen() {
      return count;
    },
  };
}
