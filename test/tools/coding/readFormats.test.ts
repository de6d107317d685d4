/** Read of PDF files and Jupyter notebooks. */
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { notebookText } from '../../../src/tools/coding/formats/notebook.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { answerOf, definitionOf, type ToolContext } from '../../../src/tools/tool.ts';
import { bench as agentBench } from '../../support/agentBench.ts';
import { call as asks, scripted } from '../../support/scriptedReplies.ts';
import { type Bench, makeBench } from './codingBench.ts';

let bench: Bench;
beforeEach(async () => {
  bench = await makeBench();
});
afterEach(() => bench.remove());

/** The content of the result, and the code of a failure. */
async function read(file_path: string, more: object = {}): Promise<{ content: unknown; code: string | undefined }> {
  const tool = codingTools({ sandbox: 'off' }).find(({ name }) => name === 'Read');
  const context = { conversationId: 'c', cwd: bench.root, signal: new AbortController().signal };
  const definition = tool && definitionOf(tool);
  const answer = answerOf(await definition?.execute({ file_path, ...more }, context as unknown as ToolContext));
  if (!answer || answer.status === 'pending') throw new Error('no result');
  return { content: answer.content, code: answer.status === 'error' ? answer.code : undefined };
}

const PDF = '%PDF-1.7\n1 0 obj\n\0';
const code = (source: unknown, outputs: unknown[] = []) => ({ cell_type: 'code', source, outputs });
const notebook = (cells: unknown[], more: object = {}) => JSON.stringify({ nbformat: 4, cells, ...more }, null, 1);

describe('a PDF file', () => {
  it('is given as a file with its bytes, by its content and not its name', async () => {
    await bench.write('docs/a.pdf', PDF);
    await bench.write('b.pdf', 'only text\n');
    expect((await read('docs/a.pdf')).content).toEqual([
      { type: 'text', text: `[docs/a.pdf: application/pdf, ${PDF.length} bytes]` },
      { type: 'file', mediaType: 'application/pdf', name: 'a.pdf', data: Buffer.from(PDF) },
    ]);
    expect((await read('b.pdf')).content).toBe('  1 | only text');
  });

  it('above the limit is refused', async () => {
    await bench.write('a.pdf', Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(10 * 1_048_576)]));
    expect((await read('a.pdf')).code).toBe('too_large');
  });

  it('reaches a model that takes it, and is named in words to one that does not', async () => {
    await bench.write('a.pdf', PDF);
    for (const [accepts, wanted] of [
      [['application/pdf'], ['text', 'file']],
      [['image/png'], ['text', 'text']],
    ] as const) {
      const model = { ...scripted([[asks('c1', 'Read', { file_path: 'a.pdf' })], 'done']), accepts };
      const { conversation } = await agentBench({ model, tools: codingTools({ sandbox: 'off' }), cwd: bench.root });
      expect((await conversation.send('go').result).text).toBe('done');
      const result = model.calls[1]?.messages.at(-1);
      expect(result?.content.map(({ type }) => type)).toEqual(wanted);
      if (wanted[1] === 'text') expect(JSON.stringify(result?.content)).toContain('a.pdf (application/pdf)');
    }
  });
});

describe('a notebook', () => {
  it('is given as its cells with what they printed', async () => {
    const outputs = [
      { output_type: 'stream', name: 'stdout', text: ['1\n', '2\n'] },
      { output_type: 'display_data', data: { 'text/plain': '<Figure>', 'image/png': 'AAAA' } },
      { output_type: 'error', ename: 'E', evalue: 'bad', traceback: ['\x1b[31mline 1\x1b[0m'] },
    ];
    const cells = [{ cell_type: 'markdown', source: ['# Title\n', 'text'] }, code(['a = 1\n', 'a'], outputs)];
    await bench.write('n.ipynb', notebook(cells, { metadata: { language_info: { name: 'python' } } }));
    expect((await read('n.ipynb')).content).toBe(
      '[cell 1: markdown]\n# Title\ntext\n\n[cell 2: code, python]\na = 1\na\n[output]\n1\n2\n[output]\n<Figure>\n[image/png is not shown]\n[output]\nE: bad\nline 1',
    );
  });

  it('is given by the lines of its file with offset or limit, so that it can be changed', async () => {
    await bench.write('n.ipynb', notebook([code('x')]));
    expect((await read('n.ipynb', { limit: 1 })).content).toMatch(/^ {2}1 \| \{\n\[lines 1 to 1; more follow/);
  });

  it('that is broken, or another file with that name, is given as the text that it is', async () => {
    for (const source of ['{"cells":', '[]', '{"cells":[]}', '{"nbformat":4,"cells":[1]}', 'text']) {
      await bench.write('n.ipynb', source);
      expect((await read('n.ipynb')).content).toBe(`  1 | ${source}`);
    }
  });

  it('is bounded: long outputs are cut, and the rest of many cells is named', async () => {
    const long = { output_type: 'stream', text: 'x'.repeat(100_000) };
    await bench.write('n.ipynb', notebook(Array.from({ length: 100 }, () => code('y'.repeat(4_000), [long]))));
    const { content } = await read('n.ipynb');
    expect(String(content).length).toBeLessThan(256 * 1_024);
    expect(content).toMatch(/\[96000 characters left out\]/);
    expect(content).toMatch(/\[cells \d+ to 100 are not shown; with offset the lines of the file are given\]$/);
  });

  it('never throws and stays in bounds, whatever it holds', () => {
    const cell = fc.record({ cell_type: fc.jsonValue(), source: fc.jsonValue(), outputs: fc.jsonValue() });
    fc.assert(
      fc.property(fc.array(fc.oneof(cell, fc.jsonValue())), fc.jsonValue(), (cells, metadata) => {
        const text = notebookText(notebook(cells, { metadata }), 2_000);
        expect(text === undefined || text.length < 2_200).toBe(true);
        expect((text ?? '').replaceAll('\n', '').replaceAll('\t', '')).not.toMatch(/\p{Cc}/u);
      }),
    );
  });

  it('outside of the working directory is refused', async () => {
    await bench.link('n.ipynb', join(bench.evil, 's'));
    expect((await read('n.ipynb')).code).toBe('outside_workspace');
  });
});
