/**
 * Plans the undo of a request: which files can be restored, which have other changes since, and which are unknown. Invariant: a plan
 * changes nothing. A file is restored only if it is still as the plan found it, and a replaced version is kept.
 */
import { chmod, rmdir, unlink } from 'node:fs/promises';
import { relative } from 'node:path';
import { type Json, type LogEntry, standingEntries } from '../../../machines/internal.ts';
import { isInside, type Place, placeOf } from '../../tools/coding/workspace.ts';
import { currentContent, putFile } from '../../tools/coding/writeFile.ts';
import { isObject } from '../../validation.ts';
import { typedText } from '../interactive/conversationLines.ts';
import { changeKey, type FileHistory, type FileState, type RecordedChange, stateOf } from './fileHistory.ts';

/** A message of a person that began work. */
export interface UndoableRequest {
  readonly messageId: string;
  readonly text: string;
  readonly seq: number;
}

interface PlannedFile {
  /** Relative to the working directory, absolute outside of it. */
  readonly name: string;
  readonly path: string;
  /** The request with the kept content. */
  readonly messageId: string;
  readonly target: FileState;
  /** The current state of the file. */
  readonly now: FileState;
  /** Somebody else has changed it between two changes of the agent. */
  readonly isMixed: boolean;
}

export interface UndoPlan {
  readonly requests: readonly UndoableRequest[];
  /** Files as the agent left them. */
  readonly unchanged: readonly PlannedFile[];
  /** Files that somebody has changed since. */
  readonly changedSince: readonly PlannedFile[];
  /** The paths of files that are as they were before. */
  readonly asBefore: readonly string[];
  /** Files that cannot be restored, with the reason. */
  readonly lost: readonly { name: string; why: string }[];
  /** Commands that ran. Their changes are unknown. */
  readonly commands: readonly string[];
  readonly changes: ReadonlyMap<string, readonly RecordedChange[]>;
}

/** The requests that the model still receives, the latest first. */
export const undoableRequests = (entries: readonly LogEntry[]): UndoableRequest[] =>
  standingEntries(entries)
    .flatMap((entry) =>
      entry.type === 'user-message' && entry.kind !== 'steer'
        ? [{ messageId: entry.messageId, text: typedText(entry.content), seq: entry.seq }]
        : [],
    )
    .reverse();

/** Plans to restore the files as they were before a request. Changes of requests that were rewound since count too. */
export async function undoPlan(
  entries: readonly LogEntry[],
  first: UndoableRequest,
  history: FileHistory,
  cwd: string,
): Promise<UndoPlan> {
  const requests = entries.flatMap((entry) =>
    entry.type === 'user-message' && entry.kind !== 'steer' && entry.seq >= first.seq
      ? [{ messageId: entry.messageId, text: typedText(entry.content), seq: entry.seq }]
      : [],
  );
  const changes = new Map<string, RecordedChange[]>();
  for (const { messageId } of requests) changes.set(messageId, await history.changes(messageId));
  const unchanged: PlannedFile[] = [];
  const changedSince: PlannedFile[] = [];
  const asBefore: string[] = [];
  const lost: { name: string; why: string }[] = [];
  for (const change of changedFiles(changes)) {
    const { path, target } = change;
    const name = isInside(cwd, path) ? relative(cwd, path) : path;
    const place = await placeOf(cwd, path, path);
    if (place.kind === 'refused' || place.path !== path) {
      lost.push({ name, why: 'its path leads elsewhere now' });
      continue;
    }
    const now = await stateOf(place);
    if (isSame(now, target)) asBefore.push(path);
    else if (target.kind === 'unkept') lost.push({ name, why: `what it was is not kept: ${target.why}` });
    else if (target.kind === 'file' && !(await history.content(change.messageId, target.hash)))
      lost.push({ name, why: 'what it was is no longer kept' });
    else if (now.kind === 'unkept') lost.push({ name, why: now.why });
    else (isAsLeft(now, change) ? unchanged : changedSince).push({ ...change, name, now });
  }
  const { unrecorded, commands } = otherChanges(entries, first.seq, changes);
  lost.push(...unrecorded.map((name) => ({ name, why: 'what it was is no longer kept' })));
  return { requests, unchanged, changedSince, asBefore, lost, commands, changes };
}

interface ChangedFile {
  readonly path: string;
  readonly messageId: string;
  readonly target: FileState;
  readonly expected: FileState | undefined;
  readonly isMixed: boolean;
}

const isAsLeft = (now: FileState, { expected, isMixed }: ChangedFile): boolean =>
  !isMixed && expected !== undefined && isSame(now, expected);

/** Each file with its state before its first change, and after its last one. */
function changedFiles(changes: ReadonlyMap<string, readonly RecordedChange[]>): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const [messageId, ofRequest] of changes) {
    for (const { path, before, after, isUndone } of ofRequest) {
      if (isUndone) continue;
      const earlier = files.get(path);
      if (earlier) {
        const isMixed = earlier.isMixed || earlier.expected === undefined || !isSame(before, earlier.expected);
        files.set(path, { ...earlier, expected: after, isMixed });
      } else files.set(path, { path, messageId, target: before, expected: after, isMixed: false });
    }
  }
  return [...files.values()];
}

function isSame(one: FileState, other: FileState): boolean {
  if (one.kind === 'file' && other.kind === 'file') return one.hash === other.hash && one.mode === other.mode;
  return one.kind === 'missing' && other.kind === 'missing';
}

/** Returns the files that tools changed without a record, and the commands of `Bash`, from entry `seq` on. */
function otherChanges(
  entries: readonly LogEntry[],
  seq: number,
  changes: ReadonlyMap<string, readonly RecordedChange[]>,
): { unrecorded: string[]; commands: string[] } {
  // The keys of a fork have the id of its original.
  const keys = [...changes.values()].flatMap((ofRequest) => ofRequest.map(({ key }) => key));
  const isRecorded = (callId: string): boolean =>
    keys.some((key) => key.endsWith(changeKey({ conversationId: '', callId })));
  const calls = new Map<string, { name: string; args: Json }>();
  const unrecorded = new Set<string>();
  const commands: string[] = [];
  for (const entry of entries) {
    if (entry.seq < seq) continue;
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') calls.set(entry.item.callId, entry.item);
    if (entry.type === 'tool-started') {
      const call = calls.get(entry.callId);
      const args = entry.args ?? call?.args;
      if (call?.name === 'Bash' && isObject(args) && typeof args.command === 'string') commands.push(args.command);
    }
    if (entry.type !== 'tool-result' || entry.outcome !== 'succeeded') continue;
    if (isRecorded(entry.callId)) continue;
    const call = calls.get(entry.callId);
    const path = call && isObject(call.args) ? call.args.file_path : undefined;
    if (call && ['Write', 'Edit', 'MultiEdit'].includes(call.name) && typeof path === 'string') unrecorded.add(path);
  }
  return { unrecorded: [...unrecorded], commands };
}

/** A restored file. `copy`: where the replaced version is kept. */
export type RestoredFile = { readonly name: string; readonly copy?: string } & (
  | { readonly kind: 'restored' | 'removed' }
  | { readonly kind: 'failed'; readonly why: string }
);

/** Restores one file, if it is still as the plan found it. A version that the agent did not write is kept. */
export async function restoreFile(file: PlannedFile, history: FileHistory, cwd: string): Promise<RestoredFile> {
  const { name, path, target, messageId } = file;
  const failed = (why: string): RestoredFile => ({ name, kind: 'failed', why });
  const place = await placeOf(cwd, path, path);
  if (place.kind === 'refused' || place.path !== path) return failed('its path leads elsewhere now');
  const kept = await history.keep(messageId, place);
  if (kept.kind === 'unkept') return failed(`what it is now cannot be kept: ${kept.why}`);
  if (!isSame(kept, file.now)) return failed('it changed just now: try again');
  const copy = kept.kind === 'file' ? { copy: history.fileOf(messageId, kept.hash) } : {};
  if (target.kind === 'missing') {
    await unlink(path);
    return { name, kind: 'removed', ...copy };
  }
  if (target.kind !== 'file') return failed('what it was is not kept');
  const bytes = await history.content(messageId, target.hash);
  if (!bytes) return failed('what it was is no longer kept');
  const refused = await written(place, bytes, target.mode);
  return refused === undefined ? { name, kind: 'restored', ...copy } : failed(refused);
}

/** Removes the directories that were made for these files, if nothing is left in them. */
export async function removeMadeDirectories(files: readonly PlannedFile[]): Promise<void> {
  const made = files.flatMap(({ target }) => (target.kind === 'missing' ? (target.made ?? []) : []));
  // A directory comes before the one that contains it.
  for (const directory of made.sort((one, other) => other.length - one.length)) {
    await rmdir(directory).catch(() => undefined);
  }
}

/** Returns why the file could not be written. */
async function written(place: Place, bytes: Uint8Array, mode: number): Promise<string | undefined> {
  const current = await currentContent(place);
  if (current.kind === 'refused') return current.message;
  const replaced = current.kind === 'content' ? { mode, stamp: current.stamp } : undefined;
  const refused = await putFile(place, bytes, replaced);
  if (refused) return refused.message;
  if (!replaced) await chmod(place.path, mode);
  return undefined;
}
