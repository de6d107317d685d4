/** Conversations that components hold: any order of mounts, unmounts and failures, and subscriptions that end. */
import { Subject } from 'rxjs';
import { expect, it } from 'vitest';
import { type ShownConversation, snapshotsOf } from '../../src/react/conversationSnapshots.ts';
import {
  type ClosableConversation,
  holdConversation,
  type SharedConversation,
} from '../../src/react/sharedConversations.ts';
import { flush } from '../support/virtualClock.ts';

const turn = async (): Promise<void> => {
  await new Promise((resolve) => setTimeout(resolve, 1));
  await flush();
};

/** An agent that notes what is open, and whose closes take a while. */
function opener({ fails = false } = {}) {
  const open = new Map<string, number>();
  const tooMany: string[] = [];
  const opened: (string | undefined)[] = [];
  const agent = {
    async open(id?: string): Promise<ClosableConversation> {
      opened.push(id);
      const key = id ?? `own ${opened.length}`;
      if ((open.get(key) ?? 0) > 0) tooMany.push(key);
      if (fails) throw new Error('it cannot be opened');
      open.set(key, (open.get(key) ?? 0) + 1);
      return {
        async close() {
          // Longer than a turn, so that the id may be wanted again meanwhile.
          await new Promise((resolve) => setTimeout(resolve, 3));
          open.set(key, (open.get(key) ?? 0) - 1);
        },
      };
    },
  };
  return { agent, open, opened, tooMany };
}

const STEPS = ['mount', 'unmount', 'again', 'turn'] as const;
const LENGTH = 5;

it(`any order of ${LENGTH} mounts, unmounts, repeated unmounts and turns opens an id once at a time, and closes it in the end`, async () => {
  const wrong: string[] = [];
  const orders = Array.from({ length: STEPS.length ** LENGTH }, (_, number) =>
    Array.from({ length: LENGTH }, (_step, at) => STEPS[Math.floor(number / STEPS.length ** at) % STEPS.length]),
  ).filter(([first]) => first === 'mount');
  await Promise.all(
    orders.map(async (order) => {
      const { agent, open, tooMany } = opener();
      const held: SharedConversation<ClosableConversation>[] = [];
      let last: SharedConversation<ClosableConversation> | undefined;
      for (const step of order) {
        if (step === 'mount') held.push(holdConversation(agent, 'a'));
        else if (step === 'turn') await turn();
        else if (step === 'again') last?.release();
        else {
          last = held.shift();
          last?.release();
        }
        if (held.length > 0) {
          const [one] = await Promise.all(held.map(({ opening }) => opening));
          if ((await held.at(-1)?.opening) !== one || open.get('a') !== 1) wrong.push(`not shared: ${order}`);
        }
      }
      for (const each of held) each.release();
      for (let turns = 0; turns < 100 && open.get('a') !== 0; turns += 1) await turn();
      if (open.get('a') !== 0 || tooMany.length > 0) wrong.push(`${open.get('a')} open: ${order}`);
    }),
  );
  expect(wrong).toEqual([]);
});

it('components without an id have a conversation each, and none is opened by an id', async () => {
  const { agent, open, opened } = opener();
  const keys = [{}, {}];
  const held = keys.map((key) => holdConversation(agent, key));
  const again = holdConversation(agent, keys[0] as object);
  const [first, second] = await Promise.all(held.map(({ opening }) => opening));
  expect([first === second, (await again.opening) === first, opened]).toEqual([false, true, [undefined, undefined]]);
  for (const each of [...held, again]) each.release();
  await expect.poll(() => [...open.values()]).toEqual([0, 0]);
});

it.each([1, 2, 3])(
  'an id that is wanted while it closes is opened after the close, once for %i components',
  async (count) => {
    let closed = (): void => undefined;
    const closing = new Promise<void>((resolve) => {
      closed = resolve;
    });
    let opens = 0;
    const agent = {
      open: async (): Promise<ClosableConversation> => {
        opens += 1;
        return { close: () => closing };
      },
    };
    const first = holdConversation(agent, 'a');
    const conversation = await first.opening;
    first.release();
    await turn();
    const held = Array.from({ length: count }, () => holdConversation(agent, 'a'));
    await turn();
    expect(opens).toBe(1);
    closed();
    const [again, ...others] = await Promise.all(held.map(({ opening }) => opening));
    expect([opens, again === conversation, others.every((each) => each === again)]).toEqual([2, false, true]);
    for (const each of held) each.release();
    await turn();
  },
);

it('an id of two agents is two conversations', async () => {
  const [one, other] = [opener(), opener()];
  const held = [holdConversation(one.agent, 'a'), holdConversation(other.agent, 'a')];
  await Promise.all(held.map(({ opening }) => opening));
  expect([one.opened, other.opened]).toEqual([['a'], ['a']]);
  held[0]?.release();
  await expect.poll(() => [one.open.get('a'), other.open.get('a')]).toEqual([0, 1]);
  held[1]?.release();
  await turn();
});

it('an opening that fails is tried again by the next component, as often as it fails, and leaves nothing to close', async () => {
  const { agent, opened } = opener({ fails: true });
  for (let time = 1; time <= 3; time += 1) {
    const held = [holdConversation(agent, 'a'), holdConversation(agent, 'a')];
    for (const { opening } of held) await expect(opening).rejects.toThrow('it cannot be opened');
    for (const each of held) each.release();
    await turn();
    expect(opened).toHaveLength(time);
  }
});

it('a subscription receives views, signals and the connection, their errors and ends, and nothing after its end', async () => {
  const sources = { view$: new Subject<never>(), live$: new Subject<never>(), connection$: new Subject<never>() };
  const names = Object.keys(sources) as (keyof typeof sources)[];
  for (const name of names) {
    for (const [end, count] of [
      ['next', 2],
      ['error', 1],
      ['complete', 1],
    ] as const) {
      const own = { ...sources, [name]: new Subject<never>() };
      const conversation = { ...own, view: () => ({}), inFlight: null, pending: [], status: 'idle' };
      const { subscribe } = snapshotsOf(conversation as unknown as ShownConversation);
      let changes = 0;
      const stop = subscribe(() => {
        changes += 1;
      });
      own[name][end](undefined as never);
      await flush();
      expect([name, end, changes]).toEqual([name, end, count]);
      if (end === 'next') own[name].next(undefined as never);
      stop();
      stop();
      await flush();
      // The one at once, and none in the microtask after the end.
      expect(changes).toBe(end === 'next' ? count + 1 : count);
      own[name].next(undefined as never);
      await flush();
      expect(changes).toBe(end === 'next' ? count + 1 : count);
      for (const each of Object.values(own)) expect(each.observed).toBe(false);
    }
  }
});

it('an id that is held and released while it closes is opened again only after both closes', async () => {
  const events: string[] = [];
  const gates: (() => void)[] = [];
  const agent = {
    async open(): Promise<ClosableConversation> {
      const number = events.filter((event) => event.startsWith('open')).length + 1;
      events.push(`open ${number}`);
      return {
        async close() {
          events.push(`closing ${number}`);
          await new Promise<void>((resolve) => gates.push(resolve));
          events.push(`closed ${number}`);
        },
      };
    },
  };
  for (const _ of [1, 2]) {
    holdConversation(agent, 'a').release();
    await turn();
  }
  gates.shift()?.();
  await turn();
  const third = holdConversation(agent, 'a');
  await turn();
  expect(events).toEqual(['open 1', 'closing 1', 'closed 1', 'open 2', 'closing 2']);
  gates.shift()?.();
  await third.opening;
  expect(events.slice(5)).toEqual(['closed 2', 'open 3']);
  third.release();
});

it('components of one conversation read the same snapshots, and those of two conversations do not', () => {
  const made = () =>
    ({ view: () => view, inFlight: null, pending: [], status: 'idle' }) as unknown as ShownConversation;
  const view = {};
  const [one, other] = [made(), made()];
  expect(snapshotsOf(one)).toBe(snapshotsOf(one));
  // React renders in an endless loop if each read returns a new object.
  expect(snapshotsOf(one).read()).toBe(snapshotsOf(one).read());
  expect(snapshotsOf(other)).not.toBe(snapshotsOf(one));
});

it('an opening that fails after its release does not end the next opening', async () => {
  const openings: { resolve(conversation: ClosableConversation): void; reject(error: Error): void }[] = [];
  const agent = {
    open: () =>
      new Promise<ClosableConversation>((resolve, reject) => {
        openings.push({ resolve, reject });
      }),
  };
  const first = holdConversation(agent, 'a');
  first.release();
  await turn();
  const second = holdConversation(agent, 'a');
  const failed = first.opening.catch((error: Error) => error.message);
  openings[0]?.reject(new Error('late'));
  expect(await failed).toBe('late');
  await turn();
  const third = holdConversation(agent, 'a');
  await turn();
  expect(openings).toHaveLength(2);
  openings[1]?.resolve({ close: async () => undefined });
  expect(await third.opening).toBe(await second.opening);
  second.release();
  third.release();
  await turn();
});
