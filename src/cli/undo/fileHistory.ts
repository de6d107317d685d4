/**
 * The contents of files before the agent's tools changed them: a list of changes for each request, and the contents by their hashes.
 * Invariant: a state is stored before its file is changed. Nothing lies in the working directory. The size is
 * bounded: the oldest requests are removed first.
 */
import { createHash, randomUUID } from 'node:crypto';
import { appendFile, lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Place } from '../../tools/coding/workspace.ts';
import { currentContent } from '../../tools/coding/writeFile.ts';

export type FileState =
  /** `made`: the directories above it that did not exist either, the outermost first. */
  | { readonly kind: 'missing'; readonly made?: readonly string[] }
  | { readonly kind: 'file'; readonly hash: string; readonly mode: number }
  /** The content is not kept. */
  | { readonly kind: 'unkept'; readonly why: string };

/** One change of one file by one call. */
export interface RecordedChange {
  readonly key: string;
  /** Absolute, links resolved. */
  readonly path: string;
  readonly before: FileState;
  /** Undefined if the process ended before the tool did. */
  readonly after?: FileState;
  /** The change was undone. */
  readonly isUndone?: true;
}

interface HistoryLimits {
  /** Bytes of all contents. */
  readonly totalMax?: number;
  /** Bytes of one content. */
  readonly fileMax?: number;
}

const TOTAL_MAX = 256 * 1_048_576;
const FILE_MAX = 10 * 1_048_576;
const LIST = 'changes.jsonl';

/** A call has one key, also one of a sub-agent. */
export const changeKey = ({ conversationId, callId }: { conversationId: string; callId: string }): string =>
  `${conversationId} ${callId}`;

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export class FileHistory {
  readonly directory: string;
  readonly #totalMax: number;
  readonly #fileMax: number;
  /** The bytes of everything, counted once and then kept up. */
  #total: Promise<number> | undefined;

  constructor(directory: string, { totalMax = TOTAL_MAX, fileMax = FILE_MAX }: HistoryLimits = {}) {
    this.directory = directory;
    this.#totalMax = totalMax;
    this.#fileMax = fileMax;
  }

  /** Keeps the state of a file that a call is about to change. */
  async before(messageId: string, key: string, place: Place): Promise<void> {
    await this.#record(messageId, { type: 'before', key, path: place.path, state: await this.keep(messageId, place) });
  }

  /** Records the state of the file after the call. The content itself is not needed again. */
  async after(messageId: string, key: string, place: Place): Promise<void> {
    await this.#record(messageId, { type: 'after', key, path: place.path, state: await stateOf(place) });
  }

  /** The changes of a request, in their order. */
  async changes(messageId: string): Promise<RecordedChange[]> {
    const text = await readFile(join(this.#placeOf(messageId), LIST), 'utf8').catch(() => '');
    const changes = new Map<string, RecordedChange>();
    for (const line of text.split('\n')) {
      const record = recordIn(line);
      if (!record) continue;
      const { key, path, state } = record;
      const change = changes.get(key);
      if (!change) changes.set(key, { key, path, before: state });
      else if (record.type === 'undone') changes.set(key, { ...change, isUndone: true });
      else if (record.type === 'after') changes.set(key, { ...change, after: state });
    }
    return [...changes.values()];
  }

  async markUndone(messageId: string, changes: readonly RecordedChange[]): Promise<void> {
    for (const { key, path, before } of changes) {
      await this.#record(messageId, { type: 'undone', key, path, state: before });
    }
  }

  /** The bytes of a kept state. Undefined if they are missing or have changed. */
  async content(messageId: string, hash: string): Promise<Buffer | undefined> {
    const bytes = await readFile(join(this.#placeOf(messageId), hash)).catch(() => undefined);
    return bytes && hashOf(bytes) === hash ? bytes : undefined;
  }

  /** Stores the content of a file as it is now. */
  async keep(messageId: string, place: Place): Promise<FileState> {
    if (place.type === 'missing') return { kind: 'missing', made: await missingAbove(place.path) };
    const current = await currentContent(place);
    if (current.kind === 'missing') return { kind: 'missing' };
    if (current.kind === 'refused') return { kind: 'unkept', why: current.message };
    const { bytes, mode } = current;
    if (bytes.length > this.#fileMax) return { kind: 'unkept', why: `it has more than ${this.#fileMax} bytes` };
    try {
      await this.#store(messageId, bytes);
    } catch (error) {
      return { kind: 'unkept', why: `it could not be stored (${(error as NodeJS.ErrnoException).code ?? error})` };
    }
    return { kind: 'file', hash: hashOf(bytes), mode };
  }

  /** The path of a stored content. */
  fileOf(messageId: string, hash: string): string {
    return join(this.#placeOf(messageId), hash);
  }

  /** Removes the stored changes and contents of these requests. */
  async forget(messageIds: Iterable<string>): Promise<void> {
    for (const messageId of messageIds) await rm(this.#placeOf(messageId), { recursive: true, force: true });
    this.#total = undefined;
  }

  /** Ids may come from other programs, so they are not used as file names. */
  #placeOf(messageId: string): string {
    return join(this.directory, hashOf(Buffer.from(messageId)));
  }

  async #record(messageId: string, record: ChangeRecord): Promise<void> {
    const place = this.#placeOf(messageId);
    await mkdir(place, { recursive: true, mode: 0o700 });
    await appendFile(join(place, LIST), `${JSON.stringify(record)}\n`, { mode: 0o600 });
  }

  async #store(messageId: string, bytes: Uint8Array): Promise<void> {
    const place = this.#placeOf(messageId);
    const file = join(place, hashOf(bytes));
    if (await stat(file).catch(() => undefined)) return;
    await mkdir(place, { recursive: true, mode: 0o700 });
    await this.#makeRoom(bytes.length, place);
    // A file has its final name only when it is complete, so an ended process leaves no partial content. Equal contents may be stored at
    // the same time.
    const draft = `${file}.${randomUUID()}.tmp`;
    try {
      await writeFile(draft, bytes, { mode: 0o600 });
      await rename(draft, file);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** Counts the bytes, and makes room for them. One at a time, so that contents which are stored together all count. */
  async #makeRoom(bytes: number, own: string): Promise<void> {
    const counted = this.#total ?? sizeBelow(this.directory);
    const total = counted.then((before) => this.#removeOldest(before + bytes, own));
    this.#total = total;
    try {
      await total;
    } catch (error) {
      if (this.#total === total) this.#total = undefined;
      throw error;
    }
  }

  /** Removes the oldest requests but this one, until the total fits. Resolves to the remaining total. */
  async #removeOldest(bytes: number, own: string): Promise<number> {
    let total = bytes;
    if (total <= this.#totalMax) return total;
    for (const { path, size } of await oldestFirst(this.directory)) {
      if (total <= this.#totalMax) break;
      if (path === own) continue;
      await rm(path, { recursive: true, force: true });
      total -= size;
    }
    return total;
  }
}

interface ChangeRecord {
  readonly type: 'before' | 'after' | 'undone';
  readonly key: string;
  readonly path: string;
  readonly state: FileState;
}

/** Undefined for a line that a killed process left incomplete. */
function recordIn(line: string): ChangeRecord | undefined {
  try {
    const { type, key, path, state } = JSON.parse(line) as Partial<ChangeRecord>;
    const isRecord = typeof key === 'string' && typeof path === 'string' && typeof state?.kind === 'string';
    return isRecord && type ? { type, key, path, state } : undefined;
  } catch {
    return undefined;
  }
}

/** The state of a file as it is now, without storing it. */
export async function stateOf(place: Place): Promise<FileState> {
  const current = await currentContent(place);
  if (current.kind === 'refused') return { kind: 'unkept', why: current.message };
  if (current.kind === 'missing') return { kind: 'missing' };
  return { kind: 'file', hash: hashOf(current.bytes), mode: current.mode };
}

async function missingAbove(path: string): Promise<string[]> {
  const directory = dirname(path);
  if (directory === path || (await lstat(directory).catch(() => undefined))) return [];
  return [...(await missingAbove(directory)), directory];
}

async function sizeBelow(directory: string): Promise<number> {
  const sizes = (await oldestFirst(directory)).map(({ size }) => size);
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function oldestFirst(directory: string): Promise<{ path: string; size: number }[]> {
  const names = await readdir(directory).catch(() => []);
  const requests = await Promise.all(
    names.map(async (name) => {
      const path = join(directory, name);
      const files = await readdir(path).catch(() => []);
      const stats = await Promise.all(files.map((file) => stat(join(path, file)).catch(() => undefined)));
      const size = stats.reduce((sum, each) => sum + (each?.size ?? 0), 0);
      return { path, size, at: Math.max(0, ...stats.map((each) => each?.mtimeMs ?? 0)) };
    }),
  );
  return requests.sort((a, b) => a.at - b.at);
}
