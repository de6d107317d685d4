/**
 * Exports the log up to the cursor as a file, as a test of its path, or as a fork. Invariant: a log is exported only with
 * whole entries.
 */
import { batch } from '@preact/signals';
import { copy, download } from './logFiles.ts';
import { announcement, cursor, entries, isPartial, open, openConversation, put } from './pageState.ts';

const HEADER = (id: string): string => JSON.stringify({ format: 'runchart-log', version: 1, conversationId: id });

/** Returns the lines that a store would contain. */
export function logText(upTo: number): string {
  const id = entries.value[0]?.conversationId ?? open.value?.id ?? 'log';
  const lines = entries.value.slice(0, upTo + 1).map(({ seq, at, ...rest }) => JSON.stringify({ seq, at, ...rest }));
  return `${[HEADER(id), ...lines].join('\n')}\n`;
}

/** Announces why the log up to the cursor cannot be exported: the page has only the beginning of an entry. */
function lacksPart(): boolean {
  const at = entries.value.slice(0, cursor.value + 1).findIndex(isPartial);
  if (at === -1) return false;
  announcement.value = `nothing was saved: entry ${at} is too large for this page, which has only its beginning. Copy the log from its store`;
  return true;
}

export function exportLog(): void {
  if (lacksPart()) return;
  const name = `${(open.value?.id ?? 'log').replace(/\.jsonl$/, '')}.jsonl`;
  download(logText(cursor.value), name);
  announcement.value = `${name} saved`;
}

/** Copies the path of the log as a vitest file. Saves it if the clipboard is not available. */
export async function exportTest(): Promise<void> {
  if (lacksPart()) return;
  const { testOf } = await import('../../src/scripts/scriptOf.ts');
  await copy(testOf(entries.value.slice(0, cursor.value + 1)), 'test');
}

/** Makes a fork: the log up to the entry, as another conversation here and as a file to open it from. */
export function forkHere(): void {
  const conversation = open.value;
  if (!conversation || conversation.of === 'xstate' || lacksPart()) return;
  const name = `${conversation.id.replace(/\.jsonl$/, '')} at ${cursor.value}`;
  const forkedEntries = entries.value.slice(0, cursor.value + 1);
  batch(() => {
    download(logText(cursor.value), `${name}.jsonl`);
    put({ id: name, source: 'file', of: 'runchart', entries: forkedEntries, broken: [], isFork: true });
    openConversation(name);
    announcement.value = `${name}.jsonl saved: the log up to here`;
  });
}
