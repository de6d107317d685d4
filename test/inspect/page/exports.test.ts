/** The files that a person takes from the page: the log up to the cursor, a fork of it, and a test of its path. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { readLog } from '../../../inspector/model/readLogText.ts';
import { pageBench, waitingLog } from './pageBench.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** A page with a log, and the files that it saves. */
async function openPage(id: string) {
  const page = await pageBench();
  const files: { name: string; text: () => Promise<string> }[] = [];
  const blobs: Blob[] = [];
  const link = {
    href: '',
    download: '',
    click: () => void files.push({ name: link.download, text: () => (blobs.at(-1) as Blob).text() }),
  };
  Object.assign(document, { createElement: () => link });
  vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => `blob:${blobs.push(blob as Blob)}`);
  vi.spyOn(URL, 'revokeObjectURL').mockReturnValue();
  const exports = await import('../../../inspector/state/logExports.ts');
  page.server.greet();
  page.server.conversation(id);
  page.server.entries(id, waitingLog(id));
  page.openConversation(id);
  const saved = async () => Promise.all(files.map(async ({ name, text }) => [name, await text()] as const));
  return { ...page, ...exports, saved };
}

describe('a log that is saved', () => {
  it('ends at the cursor, has one line for each entry below its header, and can be read again', async () => {
    const { exportLog, moveTo, saved, entries, announcement } = await openPage('c');
    moveTo(3);
    exportLog();
    const [[name, text] = ['', '']] = await saved();
    expect([name, announcement.value]).toEqual(['c.jsonl', 'c.jsonl saved']);
    expect(text.endsWith('\n')).toBe(true);
    const [header = '', ...lines] = text.trimEnd().split('\n');
    expect(JSON.parse(header)).toEqual({ format: 'runchart-log', version: 1, conversationId: 'c' });
    expect(lines.map((line) => JSON.parse(line))).toEqual(entries.value.slice(0, 4));
    const read = await readLog(text, name);
    expect([read.conversationId, read.broken, read.entries]).toEqual(['c', [], entries.value.slice(0, 4)]);
  });

  it('of a file has its name with one ending, and the id of its conversation', async () => {
    const { exportLog, logText, last, put, openConversation, entries, saved } = await openPage('c');
    put({ id: 'old.jsonl', source: 'file', of: 'runchart', entries: entries.value, broken: [] });
    openConversation('old.jsonl');
    exportLog();
    const [[name, text] = ['', '']] = await saved();
    expect(name).toBe('old.jsonl');
    expect(text).toBe(logText(last.value));
    expect(JSON.parse(text.split('\n')[0] ?? '').conversationId).toBe('c');
  });
});

describe('a fork', () => {
  it('is the log up to the cursor: saved, and open beside its original', async () => {
    const { forkHere, moveTo, saved, open, openId, conversations, announcement, logText, entries } =
      await openPage('c');
    moveTo(2);
    const expected = [logText(2), entries.value.slice(0, 3)];
    forkHere();
    const [[name, text] = ['', '']] = await saved();
    expect([name, text]).toEqual(['c at 2.jsonl', expected[0]]);
    expect([openId.value, open.value?.source, open.value?.isFork]).toEqual(['c at 2', 'file', true]);
    expect(open.value?.entries).toEqual(expected[1]);
    expect(conversations.value.get('c')?.entries).toHaveLength(8);
    expect(announcement.value).toBe('c at 2.jsonl saved: the log up to here');
  });

  it('is not made of an app, whose page has no log, nor without a conversation', async () => {
    const { forkHere, saved, open, put, openId } = await openPage('c');
    if (open.value) put({ ...open.value, of: 'xstate' });
    forkHere();
    openId.value = undefined;
    forkHere();
    expect(await saved()).toEqual([]);
  });
});

describe('a test of the path', () => {
  it('is copied, or saved where nothing may be copied, and ends at the cursor', async () => {
    const { exportTest, saved, announcement, moveTo } = await openPage('c');
    const copied: string[] = [];
    vi.stubGlobal('navigator', { clipboard: { writeText: async (text: string) => void copied.push(text) } });
    await exportTest();
    expect([copied.length, announcement.value]).toEqual([1, 'test copied']);
    expect(copied[0]).toContain("text: 'Take a note'");
    vi.stubGlobal('navigator', {});
    moveTo(1);
    await exportTest();
    const [[name, text] = ['', '']] = await saved();
    expect(name).toBe('test.txt');
    expect(text).toContain('runScript');
    expect(text).not.toContain('Take a note');
    expect(announcement.value).toBe('test saved as a file, since nothing may be copied here');
  });
});

describe('a log with an entry of which the page has only the beginning', () => {
  it('is neither saved, forked nor made into a test up to that entry, and the page shows the reason', async () => {
    const { server, exportLog, forkHere, exportTest, saved, announcement, moveTo, last, conversations } =
      await openPage('c');
    const at = last.value + 1;
    const [entry] = waitingLog('c').slice(-1);
    server.entries('c', [{ ...entry, seq: at } as never], { cut: true });
    moveTo(at);
    const open = conversations.value.size;
    for (const action of [exportLog, forkHere, exportTest]) {
      announcement.value = '';
      await action();
      expect(announcement.value).toBe(
        `nothing was saved: entry ${at} is too large for this page, which has only its beginning. Copy the log from its store`,
      );
    }
    expect([await saved(), conversations.value.size]).toEqual([[], open]);
    moveTo(at - 1);
    exportLog();
    expect(await saved()).toHaveLength(1);
  });
});

describe('files that are dropped', () => {
  it('are opened although another one cannot be read, and the page reports that', async () => {
    const { announcement, conversations } = await pageBench();
    const { openFiles } = await import('../../../inspector/state/logFiles.ts');
    const file = (name: string, text: () => Promise<string>) => ({ name, text }) as unknown as File;
    const unreadable = file('folder', () => Promise.reject(new Error('it is a folder')));
    const log = `${waitingLog('a')
      .map((entry) => JSON.stringify(entry))
      .join('\n')}\n`;
    await openFiles([file('a.jsonl', async () => log), unreadable]);
    expect(announcement.value).toBe('folder cannot be read: it is a folder');
    await openFiles([unreadable, file('b.jsonl', async () => log)]);
    expect([...conversations.value.keys()]).toEqual(['a.jsonl', 'b.jsonl']);
  });
});
