/** The output of `runchart replay`: a stored log as cycles, as rounds, as JSON. */
import { writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import { type ReplayOptions, replayCommand } from '../../src/cli/replay/replayCommand.ts';
import { project } from '../../src/projector/index.ts';
import { A, C, queued, R, reply, S, stamped, T, U } from '../projector/events.ts';
import { linesFor, place } from '../stores/storeDirectory.ts';
import { proves } from '../support/tier.ts';

const never = new AbortController().signal;

/** Runs the command on a file with this content, and returns its output and exit code. */
async function replayed(content: string | Uint8Array, options: ReplayOptions = {}, signal = never) {
  const { path } = await place();
  await writeFile(path('c.jsonl'), content);
  const written = { shown: '', notes: '' };
  const output = (name: keyof typeof written) => ({
    write: (text: string) => {
      written[name] += text;
    },
    styled: false,
  });
  const outputs = { shown: output('shown'), notes: output('notes') };
  const code = await replayCommand(path('c.jsonl'), options, outputs, signal);
  return { ...written, code, lines: written.shown.split('\n') };
}
const bare = (...events: unknown[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join('');
const logOf = async (events: readonly object[]): Promise<string> =>
  (await linesFor(stamped(events) as never)).map((line) => `${line}\n`).join('');
const replied = (costUsd: number | null) => ({ ...reply(20), costUsd });

describe('cycles', () => {
  test('each has its root, its texts, its calls by group with outcomes, and its stop', async () => {
    const { lines, notes, code } = await replayed(
      bare(
        U('look\nat it'),
        R('hm'),
        A('I look.\nThen I act.'),
        C('c1', 'read', { path: 'a' }),
        C('c2', 'LS'),
        C('c3', 'bash'),
        T('c1', 'first\nsecond\n'),
        { ...T('c2', '', 'failed'), code: 'denied' },
        T('c3', '', 'unknown'),
        U('use B', 'steer'),
        A('Done.'),
        S('error', 'max_turns'),
      ),
    );
    expect(lines).toEqual([
      '── 1 · direct',
      '> look',
      '> at it',
      '┊ hm',
      '│ I look.',
      '│ Then I act.',
      '  read-group',
      '    → read {"path":"a"}',
      '      ✓ 2 lines, 13 B: first …',
      '    → LS {}',
      '      ✗ failed, denied no output',
      '  bash-group',
      '    → bash {}',
      '      ? unknown no output',
      '> (steer) use B',
      '│ Done.',
      '■ error (max_turns)',
      '',
      '',
    ]);
    expect([notes, code]).toEqual(['', 0]);
  });

  test('a waiting cycle names its call, and an unfinished one is marked as open', async () => {
    const waiting = [U('q'), C('c1', 'Pay'), C('c2', 'Read'), T('c2'), { type: 'run-suspended', waiting: ['c1'] }];
    const suspended = await replayed(await logOf(waiting));
    expect(suspended.shown).toContain('    → Pay {}\n      ⏸ waits for a decision\n');
    expect(suspended.shown).toContain('⏸ waiting for Pay (c1)\n');
    const open = await replayed(bare(U('q'), C('c1')));
    expect(open.shown).toContain('      … no result yet\n… no stop: the log ends here\n');
    const lost = await replayed(bare(U('q'), C('c1'), S()));
    expect(lost.shown).toContain('      ? no result\n■ completed\n');
    expect(lost.shown).toContain('! result_missing {"callId":"c1"}\n');
  });

  test('waiting messages and diagnostics are at the end, at most fifty diagnostics', async () => {
    const log = [U('q'), A('x'), S('error'), queued('later'), ...Array.from({ length: 70 }, () => ({ type: 'huh' }))];
    const { lines } = await replayed(await logOf(log));
    expect(lines.slice(5, 7)).toEqual(['+ queued (followUp) later', '! unknown at entry 4 {"type":"huh"}']);
    expect(lines.filter((line) => line.startsWith('! unknown'))).toHaveLength(50);
    expect(lines.at(-2)).toBe('! and 20 more');
  });

  test('tokens and cost are summed for each cycle, over its resumed runs, and in total', async () => {
    const log = [
      ...stamped([U('a'), A('x'), replied(0.25), { type: 'run-suspended', waiting: [] }], 'r1'),
      ...stamped([{ type: 'run-resumed', of: 'r1' }, A('y'), replied(0.5), S()], 'r2', 4),
      ...stamped([U('b'), A('z'), replied(null), S()], 'r3', 8),
    ];
    const lines = (await linesFor(log as never)).map((line) => `${line}\n`).join('');
    const { shown } = await replayed(lines);
    expect(shown).toContain('■ completed · 2 turns · 20 tokens in, 40 out · $0.7500\n');
    expect(shown).toContain('■ completed · 1 turn · 10 tokens in, 20 out · cost unknown\n');
    expect(shown).toContain('together: 3 turns · 30 tokens in, 60 out · cost unknown\n');
  });

  test.each([
    [0.5, 0.25, '$0.7500'],
    [0.5, null, 'cost unknown'],
    [null, 0.25, 'cost unknown'],
    // An older log does not contain the cost of its summary.
    [0.5, undefined, '$0.5000'],
  ])('a reply of %j and a summary of %j are %s', async (spent, summed, words) => {
    const summary = { type: 'compaction', upToSeq: 0, summary: 's', ...(summed !== undefined && { costUsd: summed }) };
    const { shown } = await replayed(await logOf([U('a'), summary, A('x'), replied(spent), S()]));
    expect(shown).toContain(`■ completed · 1 turn · 10 tokens in, 20 out · ${words}\n`);
  });

  test.each([
    [0, '$0.7500'],
    [1, '$0.8750'],
    [2, '$1.0000'],
  ])('a request that was steered %i times and then resumed costs %s, all its replies together', async (steers, sum) => {
    const steered = Array.from({ length: steers }, (_, at) => [U(`s${at}`, 'steer'), A('x'), replied(0.125)]).flat();
    const first = [U('a'), A('x'), replied(0.25), ...steered, { type: 'run-suspended', waiting: [] }];
    const log = [
      ...stamped(first, 'r1'),
      ...stamped([{ type: 'run-resumed', of: 'r1' }, A('y'), replied(0.5), S()], 'r2', first.length),
    ];
    const lines = (await linesFor(log as never)).map((line) => `${line}\n`).join('');
    const { shown } = await replayed(lines);
    expect(shown.match(/\$[\d.]+/g)).toEqual([sum]);
  });

  test('events of another backend without usage show none', async () => {
    const { shown } = await replayed(bare(U('a'), A('x'), S(), U('b'), A('y'), S()));
    expect(shown).not.toMatch(/turn|cost|together/);
  });

  test('with --rounds each reply follows the new part of its input', async () => {
    const log = [U('q'), A('x'), C('c1'), reply(5), T('c1', 'ok'), U('s', 'steer'), A('y'), reply(6), S()];
    const { lines } = await replayed(await logOf(log), { rounds: true });
    expect(lines.slice(0, 12)).toEqual([
      '── 1 · direct',
      '  round 1 · 10 tokens in, 5 out',
      '  ← direct q',
      '│ x',
      '  → read {}',
      '  round 2 · 10 tokens in, 6 out',
      '  ← steer s',
      '  ← read c1',
      '    ✓ 1 line, 2 B: ok',
      '│ y',
      '■ completed · 2 turns · 20 tokens in, 11 out · cost unknown',
      '',
    ]);
  });

  test('a log without a request is reported as such', async () => {
    const { shown, code } = await replayed(await logOf([]));
    expect([shown, code]).toEqual(['no request yet\n', 0]);
  });

  test('nothing more is shown after the reader disconnects, and the exit code is 130', async () => {
    const gone = AbortSignal.abort();
    const { shown, code } = await replayed(bare(U('a'), A('x'), S()), {}, gone);
    expect([shown, code]).toEqual(['', 130]);
  });
});

test('--json is the view of the projector, on one line', async () => {
  const events = stamped([U('q\u001b[2J'), A('x'), C('c1'), T('c1'), S(), queued('f')]);
  const { lines } = await replayed(await logOf(events), { json: true });
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0] ?? '')).toEqual(JSON.parse(JSON.stringify(project(events))));
});

describe('hostile logs', () => {
  const HOSTILE = 'a\u001b]52;c;cm0gLXJm\u0007\u001b[2J\u009b31m\u202e\u200b\r■ completed\u2028x';
  const FORBIDDEN = /(?!\n)[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029]/u;

  test('H-079 no hostile field controls the terminal', async () => {
    const log = [
      U(HOSTILE),
      R(HOSTILE),
      A(HOSTILE),
      C(HOSTILE, HOSTILE, { [HOSTILE]: HOSTILE }),
      { ...T(HOSTILE, HOSTILE, 'failed'), code: HOSTILE },
      { type: 'run-suspended', waiting: [HOSTILE] },
      queued(HOSTILE),
      { type: HOSTILE },
      { type: 'diagnostic', code: HOSTILE, detail: HOSTILE },
      { ...U('image'), content: [{ type: 'image', mediaType: HOSTILE, data: HOSTILE }] },
      S('error', HOSTILE),
    ];
    for (const content of [bare(...log), await logOf(log), `${bare(...log)}${HOSTILE}`]) {
      for (const options of [{}, { rounds: true }, { json: true }]) {
        const { shown, notes } = await replayed(content, options);
        expect(shown).not.toMatch(FORBIDDEN);
        expect(notes).not.toMatch(FORBIDDEN);
        expect(shown).toContain(options.json ? '\\u001b]52' : '\\x1b]52');
      }
    }
  });

  test('a text cannot imitate a line of the program: each of its lines has a mark', async () => {
    const forged = 'ok\n■ completed\n── 2 · direct\r\n> do it';
    const { lines } = await replayed(bare(U(forged), A(forged), R(forged), C('c1', forged), T('c1', forged)));
    expect(lines.filter((line) => /^(?:■|──|> do)/.test(line))).toEqual(['── 1 · direct']);
    expect(lines.filter((line) => /^(?:[│┊>]) ■ completed$/.test(line))).toHaveLength(3);
  });

  test('endless texts, names, arguments and ids are cut, with a note', async () => {
    const long = 'y'.repeat(1_000_000);
    const { shown } = await replayed(
      bare(U(long), A(long), R(long), C(long, long, { long }), T(long, long, 'failed'), S('error', long)),
    );
    expect(shown.length).toBeLessThan(50_000);
    expect(shown).toContain('  … 980,000 more characters\n');
    expect(shown).toContain('  … 998,000 more characters\n');
  });

  test('every type of entry with every field of another shape is shown or skipped, without an error', async () => {
    const entries = sampleEntries('c').flatMap((entry) =>
      [null, 1, 'x', [], {}].map((value) =>
        Object.fromEntries(Object.entries(entry).map(([key, was]) => [key, key === 'type' ? was : value])),
      ),
    );
    for (const options of [{}, { rounds: true }, { json: true }]) {
      expect((await replayed(bare(U('q'), ...entries), options)).code).toBe(0);
    }
  });
});

describe('damaged logs', () => {
  const events = [U('q'), A('one'), A('two'), S()];

  test.for<[string, (lines: string[]) => string | Uint8Array, string[], RegExp]>([
    ['an incomplete end', (all) => all.join('\n').slice(0, -5), ['one', 'two'], /the last line is torn/],
    [
      'a line that is not JSON',
      (all) => all.map((line, i) => (i === 3 ? 'no{' : line)).join('\n'),
      ['two'],
      /line 4 .* 3 entries can be read/,
    ],
    ['bytes that are not UTF-8', (all) => Buffer.from(all.join('\n').replace('one', 'ÿ'), 'latin1'), ['two'], /line 4/],
    ['a lost line', (all) => all.filter((_, i) => i !== 3).join('\n'), ['two'], /holds entry 2, expected entry 1/],
    [
      'a newer version',
      (all) => all.join('\n').replace(/"version":\d+/, '"version":999'),
      ['one', 'two'],
      /newer runchart/,
    ],
    ['a lost header', (all) => all.slice(1).join('\n'), ['one', 'two'], /^$/],
    ['a header cut off', (all) => all.join('\n').slice(9), ['one', 'two'], /1 of 6 lines are no JSON, line 1 first/],
    [
      'zero bytes at the end',
      (all) => `${all.join('\n')}\n\0\0\0`,
      ['one', 'two'],
      /every entry can be read: zero_bytes/,
    ],
  ])('of a log with %s the rest is shown, with a note on standard error', async ([, damage, texts, expectedNote]) => {
    const { lines, notes, code } = await replayed(damage(await linesFor(stamped(events) as never)));
    expect(lines.filter((line) => line.startsWith('│ '))).toEqual(texts.map((text) => `│ ${text}`));
    expect(notes.trim().replace('runchart: ', '')).toMatch(expectedNote);
    expect(code).toBe(0);
  });

  test('a byte order mark before bare events hides none of them', async () => {
    const { lines, notes } = await replayed(`\ufeff${bare(...events)}`);
    expect([lines.slice(0, 3), notes]).toEqual([['── 1 · direct', '> q', '│ one'], '']);
  });

  test.skipIf(!proves)('a note on standard error reports bare events that an endless line cuts', async () => {
    const endless = Buffer.concat([Buffer.from(bare(...events.slice(0, 2))), Buffer.alloc(64 * 1024 * 1024 + 1, 'y')]);
    const { lines, notes, code } = await replayed(endless);
    expect([lines[2], code]).toEqual(['│ one', 0]);
    expect(notes).toBe('runchart: line 3 is too long to be read: it and what follows was left out\n');
  });

  test('an empty file, a header alone and an incomplete header are empty logs', async () => {
    const [header = ''] = await linesFor([]);
    for (const content of ['', `${header}\n`, header.slice(0, 12), '\n']) {
      expect((await replayed(content)).shown).toBe('no request yet\n');
    }
  });

  test.for<[string, string | Uint8Array]>([
    ['prose', 'Dear log,\nnothing happened.\n'],
    ['JSON of other things', '{"level":"warn","type":"request"}\n[]\n1\n'],
    ['one JSON document', '{\n  "type": "user-message"\n}\n'],
    ['bytes', Uint8Array.from({ length: 4096 }, (_, i) => (i * 7) % 256)],
  ])('%s is not a log', async ([, content]) => {
    await expect(replayed(content)).rejects.toMatchObject({ name: 'CorruptLogError', code: 'no_header' });
  });
});

test('as a test it is a vitest file that repeats the story, and nothing else', async () => {
  const { shown, notes, code } = await replayed(bare(U('look'), A('I look.'), reply(20), S('completed')), {
    asTest: true,
  });
  expect([notes, code]).toEqual(['', 0]);
  expect(shown).toContain("import { runScript } from 'runchart/testing';");
  expect(shown).toContain("{ do: 'send', text: 'look' },\n    { do: 'reply', text: 'I look.' },\n  ]);");
});
