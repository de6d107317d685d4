/**
 * A store around the library's memory store, which fails as disks and networks do. Invariant: durable entries remain.
 * An append interrupted by a crash leaves all, a prefix or nothing. The lease of a dead process is free.
 */
import type { LogEntry } from '../../../../machines/internal.ts';
import { RunchartError } from '../../../errors.ts';
import { blobReference } from '../../../stores/blobReference.ts';
import type { LogHandle, LogStore } from '../../../stores/logStore.ts';
import { sha256 } from '../../../stores/sha256.ts';
import { SurvivingStore } from '../../world/agentProcesses.ts';
import { CallLog } from '../callLog.ts';
import type { SimulatedWorld } from './simulatedWorld.ts';

type AppendOutcome = 'stored' | 'slow' | 'refused' | 'overtaken' | 'storedButRefused';

/** The probability that a later append overtakes this one, by the rarest kind of its entries. */
const OVERTAKEN: Readonly<Partial<Record<LogEntry['type'], number>>> = {
  ...{
    compaction: 0.7,
    'call-settled': 0.7,
    notice: 0.6,
    'context-warning': 0.6,
    'sub-agent': 0.5,
    extension: 0.5,
    continuation: 0.5,
  },
  ...{ 'message-returned': 0.4, 'state-changed': 0.4, 'decision-consumed': 0.3, 'tool-suspended': 0.3, decision: 0.2 },
  ...{ 'run-suspended': 0.2, 'tool-allowed': 0.2, 'run-resumed': 0.1, 'model-retry': 0.1, 'message-queued': 0.05 },
};
const USUAL = 0.02;

function rarestOf(entries: readonly LogEntry[]): readonly [kind: string, share: number] {
  let [kind, share] = [entries[0]?.type ?? '', 0];
  for (const { type } of entries) {
    const own = OVERTAKEN[type] ?? USUAL;
    if (own > share) [kind, share] = [type, own];
  }
  return [kind, share];
}

const refusal = (): Error => new RunchartError('store', 'the disk is full');

export class SimulatedStore implements LogStore {
  /** The durable entries. */
  readonly logs = new Map<string, LogEntry[]>();
  /** Conversations for which the store reported a failure after it had stored the entries. */
  readonly falselyRefused = new Set<string>();
  readonly #world: SimulatedWorld;
  readonly #blobs = new Map<string, Map<string, Uint8Array>>();
  readonly #calls = new Map<string, CallLog>();
  readonly #inner = new SurvivingStore();

  constructor(world: SimulatedWorld) {
    this.#world = world;
  }

  logOf(id: string): readonly LogEntry[] {
    return this.logs.get(id) ?? [];
  }

  callsOf(id: string): CallLog {
    const existing = this.#calls.get(id) ?? new CallLog(this.#world);
    this.#calls.set(id, existing);
    return existing;
  }

  /** The process has died and its leases are free. The next one finds the durable entries. */
  crashed(): void {
    this.falselyRefused.clear();
    this.#inner.crashed();
  }

  async open(id: string): Promise<LogHandle> {
    const inner = await this.#inner.open(id);
    const log = this.logs.get(id) ?? [];
    this.logs.set(id, log);
    return this.#handle(id, log, inner);
  }

  list() {
    return this.#inner.list();
  }

  async delete(id: string): Promise<void> {
    await this.#inner.delete(id);
    this.logs.delete(id);
  }

  #handle(id: string, log: LogEntry[], inner: LogHandle): LogHandle {
    const world = this.#world;
    const { processId } = world;
    const store = (entries: readonly LogEntry[], expectedSeq: number): void => {
      if (processId !== world.processId) throw refusal();
      try {
        inner.appendNow?.(entries, expectedSeq);
      } catch (error) {
        world.checks.refused?.(entries);
        throw error;
      }
      this.#keep(id, log, entries);
    };
    const append = async (entries: readonly LogEntry[], expectedSeq: number): Promise<void> => {
      const outcome = this.#drawOutcome(entries);
      const cut = (): void => {
        const most = world.tape.next(entries.length + 1);
        if (log.length !== expectedSeq) return;
        const torn = entries.slice(0, most);
        this.#inner.tear(id, torn);
        this.#keep(id, log, torn, true);
      };
      if (outcome === 'slow' || outcome === 'overtaken' || !world.profile.appendsAtOnce) await world.wait('store', cut);
      if (processId !== world.processId) return new Promise(() => undefined);
      if (outcome === 'refused' || outcome === 'overtaken') throw this.#refuse(entries);
      store(entries, expectedSeq);
      if (outcome !== 'storedButRefused') return;
      this.falselyRefused.add(id);
      throw this.#refuse(entries);
    };
    const handle: LogHandle = {
      read: (from) => inner.read(from),
      append,
      close: async () => {
        if (processId === world.processId) await inner.close();
      },
    };
    const { appendsAtOnce, store: share, overtaken, keepsBlobs } = world.profile;
    const kept = keepsBlobs ? { ...handle, ...this.#blobsOf(id) } : handle;
    return appendsAtOnce && share === 0 && !overtaken ? { ...kept, appendNow: store } : kept;
  }

  /** Bytes are durable at once, or not stored at all. */
  #blobsOf(id: string): Required<Pick<LogHandle, 'putBlob' | 'getBlob'>> {
    const world = this.#world;
    const blobs = this.#blobs.get(id) ?? new Map<string, Uint8Array>();
    this.#blobs.set(id, blobs);
    return {
      putBlob: async (bytes, mediaType) => {
        if (world.fault('blob-refused', world.profile.store / 4)) throw refusal();
        const reference = blobReference(sha256(bytes), mediaType);
        blobs.set(reference, bytes);
        return reference;
      },
      getBlob: async (reference) => {
        const bytes = blobs.get(reference);
        if (!bytes) world.checks.blobMissing?.(id, reference);
        return bytes ?? new Uint8Array();
      },
    };
  }

  #refuse(entries: readonly LogEntry[]): Error {
    this.#world.checks.refused?.(entries);
    return refusal();
  }

  /** Decisions are refused more often than other entries, because they are rare. */
  #drawOutcome(entries: readonly LogEntry[]): AppendOutcome {
    const world = this.#world;
    const times = entries.some(({ type }) => type === 'decision') ? 8 : 1;
    const [kind, share] = world.profile.overtaken ? rarestOf(entries) : (['', 0] as const);
    if (world.fault('store-overtaken', share)) {
      world.reach('overtaken', kind);
      return 'overtaken';
    }
    if (world.fault('store-slow', world.profile.store)) return 'slow';
    if (world.fault('store-refused', (times * world.profile.store) / 2)) return 'refused';
    if (world.fault('store-misled', world.profile.store / 4)) return 'storedButRefused';
    return 'stored';
  }

  #keep(id: string, log: LogEntry[], entries: readonly LogEntry[], torn = false): void {
    const { checks } = this.#world;
    const calls = this.callsOf(id);
    for (const entry of entries) {
      log.push(entry);
      calls.learn(entry);
      checks.stored?.(id, entry);
    }
    if (!torn) checks.appended?.(id, entries);
  }
}
