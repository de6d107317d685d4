/** The chart PROMPT: the meaning of a line, and the decision of a call. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createActor, SimulatedClock } from 'xstate';
import { answerOf, approvalLines } from '../../../src/cli/interactive/approval.ts';
import {
  type AskedCall,
  LEAVE_MS,
  type PromptAct,
  type PromptEvent,
  promptMachine,
  QUESTION_MS,
} from '../../../src/cli/interactive/prompt.machine.ts';
import { rowsOf, rowText } from '../../../src/cli/interactive/textRows.ts';

const CALL: AskedCall = { callId: 'c1', suspension: 1, args: { command: 'make' }, canAlways: true, canWiden: true };
const asked = (call = CALL, draft = ''): PromptEvent => ({ type: 'ASKED', call, draft });
const submit = (text: string, later = false): PromptEvent => ({ type: 'SUBMIT', text, later });
const ctrlC = (text = ''): PromptEvent => ({ type: 'INTERRUPT', text });
const [BEGAN, ENDED, DECIDED, ESCAPE, END] = (['BEGAN', 'ENDED', 'DECIDED', 'ESCAPE', 'END'] as const).map((type) => ({
  type,
}));

function started() {
  const clock = new SimulatedClock();
  const actor = createActor(promptMachine, { clock });
  const acts: PromptAct[] = [];
  actor.on('*', (act) => void acts.push(act));
  actor.start();
  /** A number lets time pass. */
  const acted = (...steps: (PromptEvent | number | undefined)[]): PromptAct[] => {
    acts.length = 0;
    for (const step of steps) {
      if (typeof step === 'number') clock.increment(step);
      else if (step) actor.send(step);
    }
    return [...acts];
  };
  return { actor, acted };
}
const acts = (...steps: (PromptEvent | number | undefined)[]): string[] =>
  started()
    .acted(...steps)
    .map(({ type, ...rest }) => [type, ...Object.values(rest).filter((each) => typeof each === 'string')].join(' '));

describe('a line', () => {
  test.for<[string, (PromptEvent | undefined)[], string[]]>([
    ['is sent while nothing runs', [submit(' hi ')], ['send hi']],
    ['steers during a run', [BEGAN, submit('hi')], ['steer hi']],
    [
      'with Alt+Enter or /later is queued after it',
      [BEGAN, submit('a', true), submit('/later b')],
      ['later a', 'later b'],
    ],
    ['of /later is a message while nothing runs, too', [submit('/later b')], ['later b']],
    ['that is empty does nothing', [submit('  '), BEGAN, submit('', true)], []],
    [
      'of a command is one, during a run or not',
      [submit('/cost'), BEGAN, submit('/no such')],
      ['command /cost', 'command /no such'],
    ],
    [
      'that starts with a path is a message',
      [submit('/etc/hosts says?'), submit('// a comment')],
      ['send /etc/hosts says?', 'send // a comment'],
    ],
    ['of /exit leaves', [BEGAN, submit('/exit')], ['leave done']],
  ])('%s', ([, steps, wanted]) => {
    expect(acts(...steps)).toEqual(wanted);
  });
});

describe('Escape and Ctrl-C', () => {
  test.for<[string, (PromptEvent | number | undefined)[], string[]]>([
    ['Escape stops a run, and nothing else', [ESCAPE, BEGAN, ESCAPE], ['cancel']],
    ['Ctrl-C clears the line first', [BEGAN, ctrlC('text')], ['clear']],
    ['then stops the run, and a second one leaves', [BEGAN, ctrlC(), ENDED, ctrlC()], ['cancel', 'leave interrupted']],
    ['once does not leave, and a later press counts as the first', [ctrlC(), LEAVE_MS, ctrlC()], []],
    ['twice leaves', [ctrlC(), ctrlC()], ['leave interrupted']],
    ['a line in between resets the count', [ctrlC(), submit('hi'), ctrlC()], ['send hi']],
    ['stops a pending question too', [asked(), QUESTION_MS, ctrlC()], ['fill ', 'cancel']],
    ['Ctrl-D leaves', [BEGAN, END], ['leave done']],
  ])('%s', ([, steps, wanted]) => {
    expect(acts(...steps)).toEqual(wanted);
  });
});

describe('a question', () => {
  const decided = (...lines: (string | PromptEvent)[]) => {
    const { acted } = started();
    acted(BEGAN, asked(), QUESTION_MS);
    const found = acted(...lines.map((line) => (typeof line === 'string' ? submit(line) : line)));
    return found.flatMap((act) => (act.type === 'decide' ? [act.decision] : []));
  };

  test.for<[(string | PromptEvent)[], object[]]>([
    [['y'], [{ action: 'approve' }]],
    [['YES'], [{ action: 'approve' }]],
    [['a'], [{ action: 'approve', always: 'session' }]],
    [['k'], [{ action: 'approve', always: 'kept' }]],
    [['aa'], [{ action: 'approve', always: 'session', isWide: true }]],
    [['kk'], [{ action: 'approve', always: 'kept', isWide: true }]],
    [['no, not on main'], [{ action: 'deny', reason: 'not on main' }]],
    [['n', 'no way'], [{ action: 'deny', reason: 'no way' }]],
    [['n', ''], [{ action: 'deny' }]],
    [['e', '{"command":"ls"}'], [{ action: 'edit', args: { command: 'ls' } }]],
    [['e', '{"command":', '{}'], [{ action: 'edit', args: {} }]],
    // Arguments that were not changed are the model's.
    [['e', ' { "command": "make" } '], [{ action: 'approve' }]],
    [['e', { type: 'KEPT' }, 'v', 'y'], [{ action: 'approve' }]],
    [['yes please', 'yy', 'ok', '', 'y es'], []],
    [['y', 'y', 'n'], [{ action: 'approve' }]],
  ])('%j', ([lines, wanted]) => {
    expect(decided(...lines)).toEqual(wanted);
  });

  test('arguments from an editor are asked about again, and approved as an edit', () => {
    const { acted } = started();
    acted(BEGAN, asked(), QUESTION_MS, submit('e'));
    const edited: PromptEvent = { type: 'EDITED', args: { command: 'ls' } };
    expect(acted(edited, submit('y')).map(({ type }) => type)).toEqual(['hint']);
    expect(acted(QUESTION_MS, submit('a')).map(({ type }) => type)).toEqual(['hint']);
    expect(acted(submit('y'))).toMatchObject([
      { type: 'decide', decision: { action: 'edit', args: { command: 'ls' } } },
    ]);
  });

  test('it accepts "always" only if a rule would be sufficient', () => {
    const { acted } = started();
    expect(
      acted(asked({ ...CALL, canAlways: false }), QUESTION_MS, submit('a'), submit('k')).map(({ type }) => type),
    ).toEqual(['fill', 'hint', 'hint']);
    const literal = started().acted(asked({ ...CALL, canWiden: false }), QUESTION_MS, submit('aa'), submit('a'));
    expect(literal.map(({ type }) => type)).toEqual(['fill', 'hint', 'decide']);
  });

  test('Escape leaves a reason and arguments, and at the question itself it stops the request', () => {
    const { acted } = started();
    acted(BEGAN, asked(), QUESTION_MS);
    expect(acted(submit('n'), ESCAPE, submit('e'), ESCAPE).map(({ type }) => type)).toEqual(['edit', 'fill']);
    expect(acted(ESCAPE)).toEqual([{ type: 'cancel' }]);
  });

  test('the unfinished line is kept, and restored after all calls are decided', () => {
    const { acted } = started();
    expect(acted(BEGAN, asked(CALL, 'half a sent'), asked({ ...CALL, callId: 'c2' }, 'n'), DECIDED)).toEqual([
      { type: 'fill', text: '' },
      { type: 'fill', text: '' },
      { type: 'fill', text: 'half a sent' },
    ]);
  });

  test('text typed within a moment of its appearance never decides it', () => {
    const events = fc.oneof(
      fc.constantFrom<PromptEvent | undefined>(BEGAN, ENDED, DECIDED, ESCAPE, asked(), ctrlC(), ctrlC('x')),
      fc.constantFrom('y', 'a', 'n', 'e', '{}', 'no, x', 'hello').map((text) => submit(text)),
      fc.integer({ min: 1, max: QUESTION_MS }),
    );
    fc.assert(
      fc.property(fc.array(events, { maxLength: 30 }), (steps) => {
        const { actor, acted } = started();
        let since: number | undefined;
        let open = false;
        for (const step of steps) {
          const waiting = typeof actor.getSnapshot().value.work === 'object';
          const done = acted(step);
          if (typeof step === 'number') since = since === undefined ? undefined : since + step;
          else if (step?.type === 'ASKED') [since, open] = [0, true];
          else if (step?.type === 'DECIDED' || (step?.type === 'ENDED' && !waiting)) open = false;
          for (const act of done) {
            if (act.type !== 'decide') continue;
            expect(open).toBe(true);
            expect(since).toBeGreaterThanOrEqual(QUESTION_MS);
            // Each question gets one decision.
            open = false;
          }
          if (waiting) expect(done.map(({ type }) => type)).not.toContain('send');
          if (waiting) expect(done.map(({ type }) => type)).not.toContain('steer');
        }
      }),
    );
  });
});

describe('a call that asks for approval', () => {
  const shown = (args: object, payload: object = {}, width = 200) =>
    approvalLines({
      callId: 'c1',
      name: 'Bash',
      args: args as never,
      reason: 'permission',
      payload: payload as never,
      suspension: 1,
      path: ['c1'],
    }).flatMap((line) => rowsOf(line, width).map((row) => rowText(row).trimEnd()));

  test('H-079 it is shown completely, with every hidden character as an escape, after a unique mark', () => {
    const command = `echo ${'x'.repeat(300)}\ngit push '\u001b[2K\u202e\u200d\r┃ run it?'`;
    const parts = [
      { text: 'echo x', outcome: 'allow', by: 'read-only' },
      { text: "git push '\u001b[2K'", outcome: 'ask', by: 'mode default' },
    ];
    for (const width of [200, 24]) {
      const rows = shown({ command, timeout_ms: 5 }, { by: 'mode default', parts, rules: ['bash(git push)'] }, width);
      expect(rows.every((row) => row.startsWith('┃'))).toBe(true);
      const letters = rows
        .map((row) => row.replace(/^┃ */, ''))
        .join('')
        .replaceAll(' ', '');
      expect(letters).toContain('x'.repeat(300));
      expect(letters).toContain("gitpush'\\x1b[2K\\u202e\\u200d\\r┃runit?'");
      expect(letters).toContain('timeout_ms:5');
      expect(letters).toContain('alwayswouldallowbash(gitpush)');
      expect(letters).not.toMatch(/[\p{Cc}\u202e\u200d]/u);
    }
    expect(shown({ command }, { parts, by: 'mode default' })).toContain("┃   git push '\\x1b[2K'  asks (mode default)");
  });

  test('every payload can be shown', () => {
    for (const payload of [null, 'x', [1], { parts: 1, rules: [1, 'a'], by: {} }, { parts: [null, {}, 'x'] }]) {
      expect(shown({ path: 'a' }, payload as never)[0]).toBe('┃ Bash asks to run (permission)');
    }
  });

  test('only clear words are answers', () => {
    expect(['y ', 'No', 'n: why', 'nope', 'yes!', 'always', 'E'].map((text) => answerOf(text).kind)).toEqual([
      'approve',
      'ask-reason',
      'deny',
      'unclear',
      'unclear',
      'always',
      'edit',
    ]);
  });
});
