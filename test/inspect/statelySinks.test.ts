/**
 * Everything that an adapter passes on to the Stately inspector, each with a secret and a credential in it. Invariant:
 * neither reaches the inspector, in keys, values or messages of errors, from an event or from any actor that it names.
 */
import { expect, it } from 'vitest';
import { excerpt } from '../../src/inspect/excerpt.ts';
import { statelyInspector } from '../../src/inspect/statelyInspector.ts';

const SECRET = 'a word of the host';
const CREDENTIAL = 'sk-proj-abcdefghijklmnop1234';

/** Values that contain the text. */
const holding = (text: string): readonly unknown[] => [
  text,
  `in ${text} between`,
  { key: text },
  { [text]: 1 },
  [[text]],
  new Map([['key', text]]),
  new Set([text]),
  new Error(`refused ${text}`),
  Object.assign(new Error('refused'), { cause: new Error(text) }),
];
interface Ref {
  getSnapshot(): unknown;
  _parent?: Ref;
}
const FIELDS = ['context', 'output', 'error'] as const;

/** Every text of a value, also of parts that JSON leaves out. */
function textsOf(value: unknown, seen = new Set<unknown>()): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if (seen.has(value)) return '';
  seen.add(value);
  const own = value instanceof Error ? `${value.message} ${textsOf(value.cause, seen)}` : '';
  const items = value instanceof Map || value instanceof Set ? [...value] : [];
  return [
    own,
    ...items.map((item) => textsOf(item, seen)),
    ...Object.entries(value).map(([key, child]) => `${key} ${textsOf(child, seen)}`),
  ].join(' ');
}

it.each(['@xstate.event', '@xstate.snapshot', '@xstate.actor'])('%s', (type) => {
  for (const [what, text] of Object.entries({ SECRET, CREDENTIAL }))
    for (const value of holding(text))
      for (const field of [...FIELDS, 'event'] as const) {
        const received: string[] = [];
        const observer = statelyInspector(
          {
            next: ((event: { actorRef: Ref; sourceRef: Ref; event: unknown; snapshot: unknown }) => {
              for (let ref = event.actorRef as Ref | undefined; ref; ref = ref._parent)
                received.push(textsOf(ref.getSnapshot()));
              for (let ref = event.sourceRef as Ref | undefined; ref; ref = ref._parent)
                received.push(textsOf(ref.getSnapshot()));
              received.push(textsOf(event.event), textsOf(event.snapshot));
            }) as never,
          },
          { secrets: [SECRET] },
        ) as { next(event: unknown): void };
        const snapshot = { status: 'error', value: 'x', context: {}, ...(field !== 'event' && { [field]: value }) };
        const parent = { id: 'p', sessionId: 'x:1', getSnapshot: () => snapshot };
        const actorRef = { id: 'a', sessionId: 'x:2', _parent: parent, getSnapshot: () => snapshot };
        observer.next({
          ...{ type, actorRef, sourceRef: parent, snapshot },
          event: { type: 'E', ...(field === 'event' && { value }) },
        });
        expect(received.length).toBeGreaterThanOrEqual(5);
        expect([what, field, received.join(' ').includes(text)]).toEqual([what, field, false]);
      }
});

it.each(['password', 'API_KEY', 'clientSecret', 'authorization', 'set-cookie', 'access_token'])(
  'the value under the name %s is hidden, in an object and in a map, at any depth',
  (name) => {
    for (const value of [{ [name]: 'hunter2' }, new Map([[name, 'hunter2']])])
      for (const outer of [value, [value], { inner: value }, new Map([['inner', value]]), new Set([value])])
        expect(JSON.stringify(excerpt(outer))).toMatch(new RegExp(`${name}.*\\[redacted\\]`));
    for (const other of [new Map<unknown, unknown>([[name, 7]]), new Map([[7, name]]), { [name]: '' }])
      expect(JSON.stringify(excerpt(other))).not.toContain('redacted');
  },
);

it('each event reaches the inspector with the fields that it has, and each actor as one reference', () => {
  const received: Record<string, unknown>[] = [];
  const inspector = { inspect: { next: ((event: object) => void received.push({ ...event })) as never } };
  const observer = statelyInspector(inspector) as { next(event: unknown): void };
  const logic = { id: 'machine' };
  const parent = { id: 'p', sessionId: 'x:0', logic, getSnapshot: () => ({ status: 'active', value: 'a' }) };
  const child = { ...parent, id: 'c', sessionId: 'x:1', _parent: parent };
  const [about, snapshot] = [
    { rootId: 'x:0', actorRef: child },
    { status: 'done', value: 'b', output: 0, error: null },
  ];
  observer.next({ type: '@xstate.actor', ...about });
  observer.next({ type: '@xstate.event', ...about, sourceRef: parent, event: { type: 'GO', n: 1 } });
  observer.next({ type: '@xstate.microstep', ...about, event: { type: 'GO' }, snapshot });
  observer.next({ type: '@xstate.snapshot', actorRef: parent, event: { type: 'GO' }, snapshot });
  expect(received.map((event) => Object.keys(event).sort())).toEqual([
    ['actorRef', 'rootId', 'type'],
    ['actorRef', 'event', 'rootId', 'sourceRef', 'type'],
    ['actorRef', 'event', 'snapshot', 'type'],
  ]);
  const [first, second, third] = received as unknown as { actorRef: typeof child; sourceRef: typeof parent }[];
  expect([second?.actorRef === first?.actorRef, third?.actorRef === second?.sourceRef]).toEqual([true, true]);
  expect(first?.actorRef._parent).toBe(third?.actorRef);
  expect([first?.actorRef.id, first?.actorRef.sessionId, first?.actorRef.logic]).toEqual(['c', 'x:1', logic]);
  expect(first?.actorRef.getSnapshot()).toEqual({ status: 'active', value: 'a', context: null });
  expect(received.map(({ type, rootId, event }) => [type, rootId, event])).toEqual([
    ['@xstate.actor', 'x:0', undefined],
    ['@xstate.event', 'x:0', { type: 'GO', n: 1 }],
    ['@xstate.snapshot', undefined, { type: 'GO' }],
  ]);
  expect(received[2]?.snapshot).toEqual({ status: 'done', value: 'b', context: null, output: 0, error: null });
});
