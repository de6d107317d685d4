import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, createAgent, defineTool, type Tool } from '../../src/index.ts';
import {
  call,
  calls,
  opened,
  outcomeOf,
  playTool,
  resultText,
  say,
  scripted,
  settle,
  stillClock,
  thenable,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

/** A tool whose schema is only this function. */
function checkedBy(validate: (value: unknown) => unknown, seen: unknown[] = [], more: object = {}): Tool {
  const schema = { '~standard': { version: 1, vendor: 'test', validate, ...more } };
  return defineTool({
    name: 't',
    description: '',
    parameters: schema as never,
    execute: (args: unknown) => {
      seen.push(args);
      return 'ran';
    },
  });
}
const throwing = (thrown: unknown) => () => {
  throw thrown;
};
const unreadable = new Proxy({}, { ownKeys: throwing(new Error('no')), get: throwing(new Error('no')) });

const refusing: [string, (value: unknown) => unknown][] = [
  ['throws', throwing(new Error('broken schema'))],
  ['throws undefined', throwing(undefined)],
  ['throws a bare object', throwing(Object.create(null))],
  ['throws an unreadable error', throwing(unreadable)],
  ['rejects', () => Promise.reject(new Error('broken schema'))],
  ['rejects with null', () => Promise.reject(null)],
  ['returns nothing', () => undefined],
  ['returns null', () => null],
  ['returns a text', () => 'valid'],
  ['returns true', () => true],
  ['returns an object of another form', () => ({})],
  ['returns a promise of nothing', async () => undefined],
  ['returns issues that are not a list', () => ({ issues: 'bad' })],
  ['returns invalid issues', () => ({ issues: [null, 5] })],
  ['returns an empty list of issues', () => ({ issues: [] })],
  [
    'returns a path of unusual keys',
    () => ({ issues: [{ message: 'm', path: [null, Symbol('s'), { key: 'k' }, 0] }] }),
  ],
  ['returns an unreadable result', () => unreadable],
  ['returns an unreadable value', () => ({ value: { deep: unreadable } })],
];

test.each(refusing)('a schema that %s refuses the call and nothing else', async (_, validate) => {
  const seen: unknown[] = [];
  const { result, log } = await playTool(checkedBy(validate, seen));
  expect([result.termination, outcomeOf(log), seen]).toEqual(['NaturalEnd', 'failed invalid_arguments', []]);
  expect(resultText(log)).toContain('t');
});

test('a schema that never returns is abandoned after half a minute', async () => {
  const clock = stillClock();
  const seen: unknown[] = [];
  const tool = checkedBy(() => new Promise(() => undefined), seen);
  const ports = { now: clock.now, setTimer: clock.setTimer };
  const conversation = await opened({ model: scripted([calls(call('c1', 't'))]), tools: [tool], ports });
  const { result } = conversation.send('go');
  await settle();
  await clock.advance(29_000);
  expect(conversation.status).toBe('active');
  await clock.advance(1_000);
  expect((await result).termination).toBe('NaturalEnd');
  expect([outcomeOf(conversation.log()), seen]).toEqual(['failed invalid_arguments', []]);
  expect(clock.waiting).toBe(0);
});

test('a cancel does not wait for a schema that never returns', async () => {
  const clock = stillClock();
  const tool = checkedBy(() => new Promise(() => undefined));
  const ports = { now: clock.now, setTimer: clock.setTimer };
  const conversation = await opened({ model: scripted([calls(call('c1', 't'))]), tools: [tool], ports });
  const run = conversation.send('go');
  await settle();
  await run.cancel();
  expect((await run.result).termination).toBe('Cancelled');
  expect(clock.waiting).toBe(0);
});

test('a schema may return a promise, or any thenable', async () => {
  const later = [
    async () => ({ value: { a: 1 } }),
    () => thenable((resolve: (answer: object) => void) => resolve({ value: { a: 1 } })),
  ];
  for (const validate of later) {
    const seen: unknown[] = [];
    const { log } = await playTool(checkedBy(validate, seen));
    expect([outcomeOf(log), seen]).toEqual(['succeeded', [{ a: 1 }]]);
  }
});

describe('an asynchronous check of zod', () => {
  const asked: string[] = [];
  const checked = (verdict: () => Promise<boolean>) =>
    z.object({
      path: z.string().refine((path) => {
        asked.push(path);
        return verdict();
      }, 'is taken'),
    });
  const played = async (verdict: () => Promise<boolean>) => {
    asked.length = 0;
    const execute = ({ path }: { path: string }): string => `read ${path}`;
    const tool = defineTool({ name: 't', description: '', parameters: checked(verdict), execute });
    const { log } = await playTool(tool, '{"path":"a"}');
    return [outcomeOf(log), resultText(log)];
  };

  test('a rejection refuses the call, and no rejection is unhandled', async () => {
    const [outcome, text] = await played(() => Promise.reject(new Error('no service')));
    expect([outcome, text]).toEqual([
      'failed invalid_arguments',
      expect.stringMatching(/could not be checked.*no service/),
    ]);
    await settle();
  });

  test('a rejection for a final answer is reported to the model, and no rejection is unhandled', async () => {
    const output = checked(() => Promise.reject(new Error('no service')));
    const conversation = await opened({ model: scripted([1, 2, 3].map(() => say('{"path":"a"}'))), output });
    expect((await conversation.send('go').result).error?.code).toBe('output_invalid');
    await settle();
  });

  test('it runs once if it passes, and its own error refuses a call', async () => {
    expect(await played(async () => true)).toEqual(['succeeded', 'read a']);
    expect(asked).toEqual(['a']);
    const [outcome, text] = await played(async () => false);
    expect([outcome, text]).toEqual(['failed invalid_arguments', expect.stringContaining('path: is taken')]);
  });
});

describe('the output of a schema', () => {
  test('it is copied and frozen, with own properties only, at every depth', async () => {
    const shared = { list: [{ n: 1 }], ...(JSON.parse('{"__proto__":{"admin":true}}') as object) };
    const seen: { list: object[]; admin?: boolean }[] = [];
    await playTool(checkedBy(() => ({ value: shared }), seen));
    expect(seen[0]).not.toBe(shared);
    expect(Object.isFrozen(shared)).toBe(false);
    expect([seen[0], seen[0]?.list, seen[0]?.list[0]].every(Object.isFrozen)).toBe(true);
    expect(Reflect.ownKeys(seen[0] ?? {})).toEqual(['list']);
    expect(seen[0]?.admin).toBeUndefined();
  });

  test('it may contain objects that the schema looked up, and those are unchanged', async () => {
    const handle = new (class Handle {
      count = 0;
    })();
    const at = new Date(0);
    const seen: { handle: object; at: Date }[] = [];
    await playTool(checkedBy(() => ({ value: { handle, at } }), seen));
    expect([seen[0]?.handle, seen[0]?.at]).toEqual([handle, at]);
    expect(seen[0]?.handle).toBe(handle);
    handle.count = 1;
    expect(Object.isFrozen(handle)).toBe(false);
  });

  test('it may be circular', async () => {
    const ring: { self?: object } = {};
    ring.self = ring;
    const seen: { self?: object }[] = [];
    const { log } = await playTool(checkedBy(() => ({ value: ring }), seen));
    expect(outcomeOf(log)).toBe('succeeded');
    expect(seen[0]?.self).toBe(seen[0]);
  });
});

test('of very many issues the model receives some, and their number', async () => {
  const issues = Array.from({ length: 10_000 }, (_, index) => ({ message: 'm'.repeat(10_000), path: [index] }));
  const { log } = await playTool(checkedBy(() => ({ issues })));
  expect(resultText(log)).toContain('and 9980 more');
  expect(resultText(log).length).toBeLessThan(20_000);
});

test('a schema without a JSON Schema is refused at the creation of the agent', () => {
  const input = throwing(new Error('Date cannot be represented'));
  const tool = checkedBy(() => ({ value: {} }), [], { jsonSchema: { input } });
  expect(() => createAgent({ model: scripted([]), tools: [tool] })).toThrow(ConfigurationError);
  expect(() => createAgent({ model: scripted([]), tools: [tool] })).toThrow(/tool "t"/);
});

test.each([
  ['a text', z.string(), '"string"'],
  ['a list', z.array(z.object({})), '"array"'],
  [
    'one of two objects',
    z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
    'a schema without a type',
  ],
  ['anything', z.any(), 'a schema without a type'],
])('parameters that are %s at their root are refused at the creation of the agent', (_, parameters, came) => {
  const tool = defineTool({ name: 't', description: '', parameters, execute: () => 'ran' });
  const make = (): unknown => createAgent({ model: scripted([]), tools: [tool] });
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(`the parameters of tool "t" must be an object at their root, got ${came}`);
});

test("H-076 a tool that changes its arguments changes neither the log nor the model's messages", async () => {
  const meddling = defineTool({
    name: 't',
    description: '',
    parameters: z.looseObject({ path: z.string() }),
    execute: (args) => {
      const tries = [
        () => Object.assign(args, { path: 'changed' }),
        () => Object.defineProperty(args, 'path', { value: 'changed' }),
        () => Reflect.deleteProperty(args, 'path'),
        () => Object.setPrototypeOf(args, { admin: true }),
        () => (args.list as string[]).push('more'),
      ];
      for (const attempt of tries) {
        try {
          attempt();
        } catch {
          // They are frozen, as required.
        }
      }
      return 'done';
    },
  });
  const { log, conversation } = await playTool(meddling, '{"path":"a","list":["b"]}');
  expect(outcomeOf(log)).toBe('succeeded');
  expect(JSON.stringify(log)).not.toContain('changed');
  expect(JSON.stringify(conversation.messages())).toContain('{"path":"a","list":["b"]}');
});
