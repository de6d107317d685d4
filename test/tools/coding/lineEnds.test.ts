/**
 * Write and Edit over every combination of line ends: those of the file, and those of the model's text. Invariant: a
 * file whose lines all end with CR LF keeps that, other files take the text as it is, and a byte order mark stays. The
 * expected text is made in this file.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bytesOfText, readText, replacedIn, withLineEnds } from '../../../src/tools/coding/fileText.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { placesIn } from '../../../src/tools/coding/search/textPlaces.ts';
import { answerOf, definitionOf } from '../../../src/tools/tool.ts';
import { type Bench, makeBench } from './codingBench.ts';

const ENDS = ['\n', '\r\n'] as const;
/** A text of three lines with each combination of line ends, with and without a last one. */
const texts = (words: string): string[] =>
  ENDS.flatMap((first) =>
    ENDS.flatMap((second) => ['', second].map((last) => `${words}1${first}${words}2${second}${words}3${last}`)),
  );
const MARKS = ['', '\uFEFF'];
const isWhole = (text: string): boolean => text.includes('\r\n') && !text.replaceAll('\r\n', '').includes('\n');
const crlf = (text: string): string => text.split('\r\n').join('\n').split('\n').join('\r\n');

let bench: Bench;
beforeAll(async () => {
  bench = await makeBench();
});
afterAll(() => bench.remove());

async function tool(tools: ReturnType<typeof codingTools>, name: string, args: object): Promise<string> {
  const definition = definitionOf(tools.find((each) => each.name === name) as never);
  const { signal } = new AbortController();
  const ids = { callId: 'c1', conversationId: 'c', runId: 'r', idempotencyKey: 'k', origin: { messageId: 'm' } };
  const ports = { progress: () => undefined, now: () => 0, sleep: () => Promise.resolve() };
  const context = { ...ids, ...ports, cwd: bench.root, signal, state: {} };
  return answerOf(await definition?.execute(args as never, context))?.status ?? 'none';
}

it.each(MARKS.flatMap((mark) => ENDS.map((end) => [JSON.stringify(mark + end), mark, end] as const)))(
  'Write: a file with %s keeps it, whatever line ends and mark the text of the model has',
  async (_, mark, end) => {
    const tools = codingTools();
    for (const [own, modelMark] of ENDS.flatMap((each) => MARKS.map((ofModel) => [each, ofModel] as const))) {
      await bench.write('f', `${mark}a${end}b${end}`);
      expect(await tool(tools, 'Read', { file_path: 'f' })).toBe('success');
      expect(await tool(tools, 'Write', { file_path: 'f', content: `${modelMark}c${own}d${own}` })).toBe('success');
      const kept = end === '\n' ? own : end;
      expect(await readFile(join(bench.root, 'f'), 'utf8')).toBe(`${mark}c${kept}d${kept}`);
    }
  },
);

it('a new text has the line ends of a file that uses CR LF throughout, else its own', () => {
  const wrong: string[] = [];
  for (const before of texts('old'))
    for (const after of texts('new')) {
      const file = readText(Buffer.from(before), 'f');
      if (file.kind === 'refused') throw new Error(file.message);
      if (withLineEnds(after, file) !== (isWhole(before) ? crlf(after) : after)) wrong.push(before + after);
    }
  expect(wrong).toEqual([]);
});

it('Edit: the new text has the line ends of what it replaces, else those of the file', () => {
  const wrong: string[] = [];
  for (const mark of MARKS)
    for (const before of texts('old'))
      for (const searched of ['old2', 'old1\nold2', 'old2\r\nold3', 'old1\r\nold2\nold3'])
        for (const after of texts('new')) {
          const file = readText(Buffer.from(mark + before), 'f');
          if (file.kind === 'refused') throw new Error(file.message);
          const places = [...placesIn(file, searched, { overlapping: false })];
          const found = bytesOfText(replacedIn(file, places, after) ?? '', file).toString('utf8');
          const pattern = new RegExp(searched.split(/\r?\n/).join('\\r?\\n'));
          const expected =
            mark +
            before.replace(pattern, (old) =>
              isWhole(before) || old.includes('\r\n') ? crlf(after) : after.replaceAll('\r\n', '\n'),
            );
          if (places.length !== 1 || found !== expected)
            wrong.push(JSON.stringify([mark + before, searched, found, expected]));
        }
  expect(wrong).toEqual([]);
});
