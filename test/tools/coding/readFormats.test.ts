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
  it('is returned as a file with its bytes, by its content and not its name', async () => {
    await bench.write('docs/a.pdf', PDF);
    await bench.write('b.pdf', 'only text\n');
    expect((await read('docs/a.pdf')).content).toEqual([
      { type: 'text', text: `[docs/a.pdf: application/pdf, ${PDF.length} bytes]` },
      { type: 'file', mediaType: 'application/pdf', name: 'a.pdf', data: Buffer.from(PDF) },
    ]);
    expect((await read('b.pdf')).content).toBe('  1 | only text');
  });

  it.each([
    ['%PDF-1.7\n', 'the PDF file f is larger than 10485760 bytes, and is not shown'],
    ['\x89PNG\r\n\x1a\n', 'the image f is larger than 10485760 bytes, and is not shown'],
  ])('or an image (%j) is returned up to 10 MiB, and refused above', async (head, why) => {
    const file = (bytes: number) => Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(bytes - head.length)]);
    await bench.write('f', file(10 * 1_048_576));
    expect((await read('f')).code).toBeUndefined();
    await bench.write('f', file(10 * 1_048_576 + 1));
    expect(await read('f')).toEqual({ code: 'too_large', content: why });
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
  it('is returned as its cells with their output', async () => {
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

  it('is returned as the lines of its file with offset or limit, so that it can be changed', async () => {
    await bench.write('n.ipynb', notebook([code('x')]));
    expect((await read('n.ipynb', { limit: 1 })).content).toMatch(/^ {2}1 \| \{\n\[lines 1 to 1; more follow/);
  });

  it('that is broken, or another file with that name, is returned as text', async () => {
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

  const outputOf = (output: object) =>
    notebookText(notebook([code('x', [output])]), 10_000)
      ?.split('\n')
      .slice(2);
  const data = (forms: object) => ({ output_type: 'execute_result', data: forms });
  it.each<[object, string[]]>([
    [{ output_type: 'stream', text: 'a' }, ['[output]', 'a']],
    [{ output_type: 'stream', text: ['a', 'b\n'] }, ['[output]', 'ab']],
    [{ output_type: 'stream', text: '\n' }, []],
    [{ output_type: 'stream' }, []],
    [data({ 'text/plain': ['1\n', '2'] }), ['[output]', '1', '2']],
    [data({ 'text/markdown': '# A' }), ['[output]', '# A']],
    [data({ 'text/markdown': '# A', 'text/plain': 'A' }), ['[output]', 'A']],
    [data({ 'text/html': '<b>a</b>' }), []],
    [data({ 'image/png': 'AAAA', 'text/plain': 'A' }), ['[output]', 'A', '[image/png is not shown]']],
    ...['image/svg+xml', 'application/json', 'video/mp4', 'audio/wav'].map((type): [object, string[]] => [
      data({ [type]: 'x' }),
      ['[output]', `[${type} is not shown]`],
    ]),
    [data({ [`image/${'x'.repeat(200)}`]: 'x' }), ['[output]', `[image/${'x'.repeat(94)} is not shown]`]],
    [{ output_type: 'error', ename: 'E', evalue: 'v', traceback: ['a', 'b'] }, ['[output]', 'E: v', 'a', 'b']],
    [{ output_type: 'stream', text: 'x'.repeat(4_000) }, ['[output]', 'x'.repeat(4_000)]],
    [{ output_type: 'stream', text: 'x'.repeat(4_001) }, ['[output]', 'x'.repeat(4_000), '[1 characters left out]']],
    [data({ 'text/plain': 'x'.repeat(4_002) }), ['[output]', 'x'.repeat(4_000), '[2 characters left out]']],
  ])('shows the output %j as text, or names what is none', (output, lines) => {
    expect(outputOf(output)).toEqual(lines);
  });

  it.each<[object, object, string]>([
    [code('x'), { language_info: { name: 'python' } }, '[cell 1: code, python]\nx'],
    [code('x'), { language_info: { name: 'c++' } }, '[cell 1: code, c++]\nx'],
    [code('x'), { language_info: { name: 'a b' } }, '[cell 1: code]\nx'],
    [code('x'), { language_info: { name: 'x'.repeat(31) } }, '[cell 1: code]\nx'],
    [code('x'), {}, '[cell 1: code]\nx'],
    [{ cell_type: 'markdown', source: 'x' }, { language_info: { name: 'python' } }, '[cell 1: markdown]\nx'],
    [{ cell_type: 'raw', source: ['x', 'y'] }, {}, '[cell 1: raw]\nxy'],
    [{ ...code('x', [{ output_type: 'stream', text: 'a' }]), cell_type: 'markdown' }, {}, '[cell 1: markdown]\nx'],
    [{ source: 'x' }, {}, '[cell 1: unknown]\nx'],
    [{ cell_type: 'y'.repeat(31), source: 'x' }, {}, `[cell 1: ${'y'.repeat(30)}]\nx`],
  ])('shows the kind of the cell %j, and the language of code alone', (cell, metadata, text) => {
    expect(notebookText(notebook([cell], { metadata }), 10_000)).toBe(text);
  });

  it('without cells is named so, and is shown as far as its bytes have room', () => {
    expect(notebookText(notebook([]), 100)).toBe('[a notebook without cells]');
    const cell = { cell_type: 'raw', source: 'é'.repeat(20) };
    const whole = notebookText(notebook([cell, cell]), 10_000) ?? '';
    expect(notebookText(notebook([cell, cell]), Buffer.byteLength(whole) + 2)).toBe(whole);
    expect(notebookText(notebook([cell, cell]), Buffer.byteLength(whole) + 1)).toBe(
      `[cell 1: raw]\n${'é'.repeat(20)}\n\n[cells 2 to 2 are not shown; with offset the lines of the file are given]`,
    );
  });

  it('is recognized by its name in any case, and with offset only is returned as lines', async () => {
    await bench.write('N.IPYNB', notebook([code('x')]));
    expect((await read('N.IPYNB')).content).toBe('[cell 1: code]\nx');
    expect((await read('N.IPYNB', { offset: 2 })).content).toMatch(/^ {2}2 \| /);
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

describe('odd values in a notebook', () => {
  it('an object in place of a text is shown as JSON', () => {
    const odd = { toString: 1 };
    const error = { output_type: 'error', ename: odd, evalue: 'v', traceback: [odd] };
    const text = notebookText(notebook([code([odd], [error])]), 10_000);
    expect(text).toBe('[cell 1: code]\n{"toString":1}\n[output]\n{"toString":1}: v\n{"toString":1}');
  });

  it('a long output is never cut inside a character', () => {
    const output = { output_type: 'stream', text: `${'x'.repeat(3_999)}😀y` };
    const text = notebookText(notebook([code('x', [output])]), 10_000);
    expect(text).toMatch(/x\n\[3 characters left out\]$/);
  });
});
