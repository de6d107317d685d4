/** `runchart inspect <log>` with a log that is no log of this library: the events that the page receives. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { inspectCommand } from '../../src/cli/inspectCommand.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { Watcher } from '../inspect/pageWatcher.ts';

/** Shows the events of a file, and returns the messages that a page receives about them. */
async function shown(...events: object[]) {
  const folder = await mkdtemp(join(tmpdir(), 'runchart-inspect-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'wire.jsonl');
  await writeFile(path, events.map((event) => JSON.stringify(event)).join('\n'));
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const end = new AbortController();
  const over = inspectCommand(path, {}, end.signal);
  await vi.waitFor(() => expect(written).toHaveBeenCalled());
  const [, url = ''] = /inspector (\S+)/.exec(written.mock.calls.flat().join('')) ?? [];
  written.mockRestore();
  const page = await Watcher.open(url);
  const { unread = [] } = await page.see('conversation');
  await page.see('entry');
  end.abort();
  expect(await over).toBe(0);
  return { unread, entries: page.all('entry').map(({ entry }) => entry) };
}

test.each(['abc', '', '-1', '99999', '1.5'])('a port %j is a usage error', async (port) => {
  const shownLog = inspectCommand('no-log', { port }, AbortSignal.abort());
  await expect(shownLog).rejects.toThrow(new ConfigurationError(`expected a port from 0 to 65535, got ${port}`));
});

test('a reply that is one event comes item by item, and an event that cannot be shown is named', async () => {
  const items = ['One.', 'Two.'].map((text) => ({ type: 'assistant', text }));
  const { unread, entries } = await shown(
    { type: 'user-message', messageId: 'm', content: [{ type: 'text', text: 'Count.' }] },
    { type: 'agent-output', items },
    { type: 'agent-output' },
    { type: 'run-stop', reason: 'completed' },
  );
  expect(unread).toEqual(['entry 3 (agent-output): its item cannot be used']);
  expect(entries.map(({ seq, type }) => [seq, type])).toEqual([
    [0, 'user-message'],
    [1, 'agent-output'],
    [2, 'agent-output'],
    [3, 'run-stop'],
  ]);
});
