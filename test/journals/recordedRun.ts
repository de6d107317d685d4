/**
 * A recorded run and its replay. Rule: the recording passes through JSON text, as through a file, and is frozen. The replay has a
 * model and plugins that throw when they are called.
 */
import { expect } from 'vitest';
import {
  type AgentOptions,
  type Conversation,
  createAgent,
  type LogEntry,
  type LogHandle,
  type LogStore,
  memoryStore,
  type Plugin,
} from '../../src/index.ts';
import { type RecordedDelivery, recordingJournal, replayRecording } from '../../src/journals/index.ts';

export interface Recorded {
  conversation: Conversation;
  /** The log when the recording began. */
  entries: readonly LogEntry[];
  recording(): RecordedDelivery[];
  /** The log of the replay, as text. The agent takes no part in it. */
  replayed(): string;
  /** The live log, as text. */
  logged(): string;
}

/** A plugin of the same phases, each of which fails. */
function failing(plugin: Plugin): Plugin {
  const phases = Object.entries(plugin).filter(([, value]) => typeof value === 'function');
  const fail = (): never => {
    throw new Error('a replay calls no plugin');
  };
  return { name: plugin.name, ...Object.fromEntries(phases.map(([phase]) => [phase, fail])) };
}

export async function recorded(options: AgentOptions, id = 'c'): Promise<Recorded> {
  const lines: string[] = [];
  const { secrets = [] } = options;
  const journal = recordingJournal((line) => void lines.push(JSON.stringify(line)), { secrets });
  const agent = createAgent({ ...options, ports: { ...options.ports, journal } });
  const conversation = await agent.open(id);
  const entries = conversation.log();
  const recording = (): RecordedDelivery[] =>
    lines.map((line) => JSON.parse(line, (_, value) => Object.freeze(value)) as RecordedDelivery);
  const logged = (): string => JSON.stringify(conversation.log());
  const { policies, plugins = [], model } = options;
  const replayed = (): string =>
    JSON.stringify(
      replayRecording({
        recording: recording(),
        entries: JSON.parse(JSON.stringify(entries)) as LogEntry[],
        model: { id: model.id },
        plugins: plugins.map(failing),
        secrets,
        ...(policies && { policies }),
      }),
    );
  return { conversation, entries, recording, replayed, logged };
}

/** The log of the replay equals the recorded log byte for byte, and is not empty. */
export function expectSame({ entries, logged, replayed, conversation }: Recorded): void {
  expect(conversation.log().length).toBeGreaterThan(entries.length);
  expect(replayed()).toBe(logged());
}

export interface Faults {
  /** Called with the number of each append, from 0. It throws to make the append fail, and may answer late. */
  append(count: number): void | Promise<void>;
  /** The store can append synchronously. */
  atOnce: boolean;
}

/** A store in memory whose appends can be slow or fail, from the first one after the opening. */
export function faultyStore({ append, atOnce }: Faults): LogStore {
  const inner = memoryStore();
  return {
    ...inner,
    async open(id) {
      const handle = await inner.open(id);
      let count = -1;
      const next = (): number => {
        count += 1;
        return count - 1;
      };
      const faulty: LogHandle = {
        read: (from) => handle.read(from),
        close: () => handle.close(),
        async append(entries, expectedSeq) {
          const mine = next();
          if (mine >= 0) await append(mine);
          await handle.append(entries, expectedSeq);
        },
      };
      if (!atOnce || !handle.appendNow) return faulty;
      const { appendNow } = handle;
      faulty.appendNow = (entries, expectedSeq) => {
        const mine = next();
        if (mine >= 0) append(mine);
        appendNow(entries, expectedSeq);
      };
      return faulty;
    },
  };
}
