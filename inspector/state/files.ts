/** Logs from files: read here, sent nowhere. And what leaves the page: copies and downloads that one asks for. */
import { batch } from '@preact/signals';
import { readLog } from '../model/readLog.ts';
import { count } from '../model/words.ts';
import { connection, openConversation, openId, put, reading, said } from './store.ts';

export async function openText(text: string, name: string): Promise<void> {
  const timer = setTimeout(() => {
    reading.value = `reading ${name}`;
  }, 300);
  const log = await readLog(text, name, (read, of) => {
    if (reading.value !== '') reading.value = `reading ${count(read)} of ${count(of)} lines`;
  });
  clearTimeout(timer);
  batch(() => {
    reading.value = '';
    if (log.entries.length === 0 && log.broken.length === 0) {
      said.value = `${name} holds no entry`;
      return;
    }
    const [first] = log.entries;
    const above = first?.type === 'conversation' ? first.parent : undefined;
    const parent = above && { conversation: above.conversationId, callId: above.callId };
    put({
      id: name,
      source: 'file',
      of: 'runchart',
      entries: log.entries,
      broken: log.broken,
      ...(parent && { parent }),
    });
    openId.value = undefined;
    openConversation(name);
    said.value = `${name}: ${count(log.entries.length)} entries`;
  });
}

export async function openFiles(files: Iterable<File>): Promise<void> {
  for (const file of files) await openText(await file.text(), file.name);
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
    said.value = `${what} copied`;
  } catch {
    download(text, `${what.replaceAll(' ', '-')}.txt`);
    said.value = `${what} saved as a file, since nothing may be copied here`;
  }
}

/** Whether the page was served by an inspector; a page opened by itself reads files alone. */
export const isServed = (): boolean => connection.value.state !== 'none';
