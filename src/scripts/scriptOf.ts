/**
 * Converts a log to the story that leads to such a log, and to a test that repeats the story. Invariant: the agent's own
 * work (gates, phases, waits, promotions) is omitted. A script cannot contain facts that the log lacks, such as a
 * secret.
 */
import { type FinishReason, type Json, type LogEntry, standingEntries } from '../../machines/internal.ts';
import { readable } from '../log/entryShape.ts';
import { type Move, type SaidCall, sentenceOf, shareFilled } from './moves.ts';

type Entry<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;

/** A message that fills the window is described by its share. */
function textOrFill(text: string): { text: string } | { fills: number } {
  const fills = shareFilled(text);
  return fills === undefined ? { text } : { fills };
}

const textOf = (content: Entry<'user-message'>['content']): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');

class Telling {
  readonly moves: Move[] = [];
  /** Numbers of calls, by id. */
  readonly #numbers = new Map<string, number>();
  /** Calls that run. */
  readonly #running = new Set<string>();
  /** Calls that wait, and whether they wait for their sub-agents. */
  readonly #waiting = new Map<string, boolean>();
  readonly #queued = new Set<string>();
  #calls: SaidCall[] = [];
  #texts: string[] = [];
  /** The run under way, or the last. */
  #run: string | null = null;
  /** Attempts of this turn that failed. */
  #failures = 0;
  /** Nothing runs: a run that begins now was asked for. */
  #rests = true;
  #ended: Entry<'run-stop'> | undefined;
  /** The previous entry. */
  #before: LogEntry | undefined;

  take(entry: LogEntry): void {
    this.#tell(entry);
    if (entry.type === 'run-started' || entry.type === 'run-resumed') this.#run = entry.runId;
    if (entry.type !== 'checkpoint' && entry.type !== 'diagnostic') this.#before = entry;
  }

  #tell(entry: LogEntry): void {
    switch (entry.type) {
      case 'message-queued':
        this.#queued.add(entry.messageId);
        return this.#say({ do: entry.kind, ...textOrFill(textOf(entry.content)) });
      case 'message-returned':
        if (this.#queued.delete(entry.messageId) && entry.why === 'cancelled') this.#say({ do: 'takeBack' });
        return;
      case 'user-message':
        return this.#message(entry);
      case 'run-resumed':
        return this.#resumed();
      case 'agent-output':
        return this.#output(entry);
      case 'model-reply':
        return this.#reply(entry.finish);
      case 'model-retry':
        this.#failures += 1;
        return this.#say({ do: 'modelFails', retryable: true });
      case 'compaction':
        this.#say({ do: 'sumUp' });
        return;
      case 'notice':
        if (entry.code === 'compaction_failed') return this.#notSummedUp();
        return entry.code === 'tool_retry' ? this.#retried(entry.text) : undefined;
      case 'tool-started':
        // A run that only repeats calls of an ended cycle has no beginning of its own in the log.
        if (entry.runId !== this.#run && this.#rests) this.#say({ do: 'resume' });
        this.#run = entry.runId;
        this.#running.add(entry.callId);
        return;
      case 'tool-suspended':
        if (this.#running.delete(entry.callId)) this.#say({ do: 'tool', call: this.#numberOf(entry.callId) });
        this.#waiting.set(entry.callId, entry.reason === 'sub-agent' && isWithin(entry.payload));
        return;
      case 'tool-result':
        return this.#result(entry);
      case 'decision':
        return this.#decision(entry);
      case 'call-settled':
        return this.#settled(entry);
      case 'run-suspended':
        this.#rests = true;
        return;
      case 'run-stop':
        return this.#stopped(entry);
      default:
        return;
    }
  }

  #say(move: Move): void {
    this.moves.push(move);
  }

  #numberOf(callId: string): number {
    return this.#numbers.get(callId) ?? 0;
  }

  #message({ messageId, kind, content }: Entry<'user-message'>): void {
    const waited = this.#queued.delete(messageId);
    // A queued message is promoted automatically, except after a crash.
    if (waited && kind === 'followUp' && this.#ended?.cause === 'crash') this.#say({ do: 'resume' });
    if (!waited && kind !== 'steer') this.#say({ do: 'send', ...textOrFill(textOf(content)) });
    this.#begun();
  }

  #resumed(): void {
    // A message that was queued directly before has resumed the cycle, because nothing was undecided.
    if (this.#before?.type !== 'message-queued') this.#say({ do: 'resume' });
    this.#begun();
  }

  #begun(): void {
    this.#rests = false;
    this.#ended = undefined;
    this.#failures = 0;
  }

  #output({ item }: Entry<'agent-output'>): void {
    if (item.type === 'assistant') this.#texts.push(item.text);
    if (item.type !== 'tool-call') return;
    this.#numbers.set(item.callId, this.#numbers.size + 1);
    this.#calls.push({ name: item.name, args: item.argsText ?? item.args });
  }

  #reply(finish: FinishReason): void {
    const text = this.#texts.join('');
    const calls = this.#calls;
    const usual = calls.length > 0 ? 'tool-calls' : 'stop';
    this.#say({
      do: 'reply',
      ...((text !== '' || calls.length === 0) && { text }),
      ...(calls.length > 0 && { calls }),
      ...(finish !== usual && { finish }),
    });
    this.#texts = [];
    this.#calls = [];
    this.#failures = 0;
  }

  /** The latest summary failed. */
  #notSummedUp(): void {
    this.moves.pop();
    this.#say({ do: 'modelFails', retryable: this.#failures > 0 });
    this.#failures = 0;
  }

  #retried(text: string): void {
    for (const callId of this.#running) {
      const [, code] = text.split(`in call ${callId} (`);
      if (code === undefined) continue;
      const made = code.startsWith('timeout)') ? 'timeOut' : 'fail';
      return this.#say({ do: 'tool', call: this.#numberOf(callId), made });
    }
  }

  #result({ callId, outcome, code }: Entry<'tool-result'>): void {
    const ran = this.#running.delete(callId);
    this.#waiting.delete(callId);
    if (!ran || (outcome !== 'succeeded' && outcome !== 'failed')) return;
    const call = this.#numberOf(callId);
    if (outcome === 'succeeded') this.#say({ do: 'tool', call });
    else this.#say({ do: 'tool', call, made: code === 'timeout' ? 'timeOut' : 'fail' });
  }

  #decision({ callId, decision }: Entry<'decision'>): void {
    // A message inside a call is in the log of its sub-agent.
    const action = this.#waiting.get(callId) ? 'approve' : decision.action;
    this.#say({
      ...{ do: 'decide', call: this.#numberOf(callId), action },
      ...(decision.action === 'edit' && { args: decision.args }),
      ...(action === 'answer' && decision.action === 'answer' && { payload: decision.payload }),
    });
  }

  #settled({ callId, how }: Entry<'call-settled'>): void {
    const call = this.#numberOf(callId);
    if ('ran' in how) this.#say({ do: 'settle', call, how: 'ran', result: how.ran });
    else this.#say({ do: 'settle', call, how: 'retry' in how ? 'retry' : 'didNotRun' });
  }

  #stopped(entry: Entry<'run-stop'>): void {
    const { cause } = entry;
    if (cause === 'cancelled') this.#say({ do: 'cancel' });
    if (cause === 'timeout') this.#say({ do: 'deadline' });
    if (cause === 'crash') this.#say({ do: 'crash' });
    if (cause === 'model' && !this.#rests) this.#say({ do: 'modelFails', retryable: this.#failures > 0 });
    this.#texts = [];
    this.#calls = [];
    this.#running.clear();
    this.#waiting.clear();
    this.#rests = true;
    this.#ended = entry;
  }
}

/** The payload of a call that waits for calls within it names them. */
const isWithin = (payload: Json | undefined): boolean =>
  typeof payload === 'object' && payload !== null && !Array.isArray(payload) && 'waiting' in payload;

/** Logs may come from other programs, so an entry without its type's form is skipped. */
function isReadable(entry: unknown): entry is LogEntry {
  try {
    readable({ seq: 0, ...(entry as object) } as LogEntry);
    return true;
  } catch {
    return false;
  }
}

/** The id of a message whose wait the entry ends. */
const endedWait = (entry: LogEntry): string | undefined =>
  entry.type === 'user-message' || entry.type === 'message-returned' ? entry.messageId : undefined;

/** The entries that can be read and that no rewind took back. A message whose delivery was rewound was never queued. */
function storyEntries(entries: readonly LogEntry[]): readonly LogEntry[] {
  const all = entries.filter(isReadable);
  const standing = standingEntries(all);
  if (standing === all) return all;
  const ended = new Set(all.map(endedWait));
  const standingEnds = new Set(standing.map(endedWait));
  return standing.filter(
    (entry) => entry.type !== 'message-queued' || !ended.has(entry.messageId) || standingEnds.has(entry.messageId),
  );
}

/**
 * Returns the story that leads to such a log, as moves, without the parts that a rewind removed. Returns none if it is not the
 * log of a conversation.
 */
export function scriptOf(entries: readonly LogEntry[]): readonly Move[] {
  const telling = new Telling();
  for (const entry of storyEntries(entries)) telling.take(entry);
  return telling.moves;
}

type RunEnd = Entry<'run-stop' | 'run-suspended'>;

/** Returns the end of the last run of the log, or undefined if it has none. */
export function endOfLastRun(entries: readonly LogEntry[]): RunEnd | undefined {
  const bounds = entries.filter(({ type }) => type.startsWith('run-'));
  const last = bounds.at(-1);
  return last?.type === 'run-stop' || last?.type === 'run-suspended' ? last : undefined;
}

/** Returns how a run ended, in words. */
export function endInWords(end: RunEnd | undefined): string {
  if (end?.type !== 'run-stop') return end ? 'waiting' : 'open';
  const { reason, cause } = end;
  return cause === undefined || cause === 'end_turn' ? reason : `${reason} (${cause})`;
}

const quoted = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

function keyOf(key: string): string {
  // Without brackets it would set the prototype.
  if (key === '__proto__') return "['__proto__']";
  return /^[A-Za-z_$][\w$]*$/.test(key) ? key : quoted(key);
}

/** A value as TypeScript: keys without quotes where they need none. */
function literal(value: Json | undefined): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const fields = Object.entries(value).map(([key, field]) => {
    return `${keyOf(key)}: ${literal(field)}`;
  });
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

/** Returns a vitest file that repeats the story of the log and checks its end. The reader adds the agent. */
export function testOf(entries: readonly LogEntry[]): string {
  const read = storyEntries(entries);
  const script = scriptOf(read);
  const end = endOfLastRun(read);
  // `runScript` interrupts a run that is still active after the last move.
  const reason = end?.type === 'run-stop' ? end.reason : 'interrupted';
  const isWaiting = end?.type === 'run-suspended';
  const secret = JSON.stringify(script).includes('[redacted]');
  return [
    "import { expect, it } from 'vitest';",
    "import { runScript } from 'runchart/testing';",
    '// Its tools are executed: point them at a double. (world) => createAgent({ tools, …, ...world })',
    "import { agent } from './agent.ts';",
    '',
    ...(secret ? ['// [redacted] stands for a secret that the log does not hold: fill in a value.'] : []),
    `it(${quoted(sentenceOf(script, endInWords(end)))}, async () => {`,
    '  const { result } = await runScript(agent, [',
    ...script.map((move) => `    ${literal(move as unknown as Json)},`),
    '  ]);',
    isWaiting ? "  expect(result.termination).toBe('Suspended');" : `  expect(result.reason).toBe(${literal(reason)});`,
    '});',
    '',
  ].join('\n');
}
