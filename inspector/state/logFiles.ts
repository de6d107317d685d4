/**
 * Opens logs from files, and saves copies that a person requests. Invariant: the page reads files itself and sends them
 * nowhere.
 */
import { batch } from '@preact/signals';
import { count } from '../../src/words/formats.ts';
import { type ReadLog, readLog } from '../model/readLogText.ts';
import { announcement, type Conversation, connection, openConversation, openId, put, reading } from './pageState.ts';

/** A longer log is opened with this many entries. The rest is read on request. */
const ENTRIES_AT_ONCE = 10_000;

async function whileReading(name: string, read: (progress: (done: number, total: number) => void) => Promise<ReadLog>) {
  const timer = setTimeout(() => {
    reading.value = `reading ${name}`;
  }, 300);
  try {
    return await read((done, total) => {
      if (reading.value !== '') reading.value = `reading ${count(done)} of ${count(total)} lines`;
    });
  } finally {
    clearTimeout(timer);
    reading.value = '';
  }
}

function conversationOf(name: string, { entries, broken, lines, read, more }: ReadLog): Conversation {
  const [first] = entries;
  const above = first?.type === 'conversation' ? first.parent : undefined;
  const parent = above && { conversation: above.conversationId, callId: above.callId };
  const rest = more && {
    read,
    lines,
    async more() {
      const log = await whileReading(name, (progress) => more(ENTRIES_AT_ONCE, progress));
      put(conversationOf(name, log));
      announcement.value = `${name}: ${count(log.entries.length)} entries`;
    },
  };
  return {
    id: name,
    source: 'file',
    of: 'runchart',
    entries,
    broken,
    ...(parent && { parent }),
    ...(rest && { rest }),
  };
}

export async function openText(text: string, name: string): Promise<void> {
  const log = await whileReading(name, (progress) => readLog(text, name, progress, ENTRIES_AT_ONCE));
  batch(() => {
    if (log.entries.length === 0 && log.broken.length === 0) {
      announcement.value = `${name} holds no entry`;
      return;
    }
    put(conversationOf(name, log));
    openId.value = undefined;
    openConversation(name);
    announcement.value = `${name}: ${count(log.entries.length)} entries`;
  });
}

export async function openFiles(files: Iterable<File>): Promise<void> {
  const unreadable: string[] = [];
  for (const file of files) {
    try {
      await openText(await file.text(), file.name);
    } catch (error) {
      // A folder, or a file that is gone or too large for a text.
      unreadable.push(`${file.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (unreadable.length > 0) announcement.value = unreadable.join(', ');
}

export function chooseFile(): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.accept = '.jsonl,.ndjson,.json,application/jsonl';
  input.multiple = true;
  input.onchange = () => void openFiles(input.files ?? []);
  input.click();
}

export function listenForDrops(): void {
  addEventListener('dragover', (event) => {
    event.preventDefault();
    document.body.classList.add('is-dropping');
  });
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) document.body.classList.remove('is-dropping');
  });
  addEventListener('drop', (event) => {
    event.preventDefault();
    document.body.classList.remove('is-dropping');
    void openFiles(event.dataTransfer?.files ?? []);
  });
}

export function download(text: string, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announcement.value = `${what} copied`;
  } catch {
    download(text, `${what.replaceAll(' ', '-')}.txt`);
    announcement.value = `${what} saved as a file, since nothing may be copied here`;
  }
}

/** Returns true if an inspector served the page. Otherwise it reads only files. */
export const isServed = (): boolean => connection.value.state !== 'none';
