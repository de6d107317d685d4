/**
 * Random charts of the seven verbs. Rule: XState accepts each of them. Eventless transitions cost fuel, so no chart runs
 * for ever.
 */
import { type AnyStateMachine, setup } from 'xstate';
import { ask, drop, log, spawn, stop, tell, update } from '../../machines/verbs.ts';
import { verbs } from '../../machines/xstateVerbs.ts';

export interface RandomContext {
  fuel: number;
  count: number;
  name: string;
}
type Pick = (below: number) => number;
type Args = { context: RandomContext; event: { type: string } };

export const EVENTS = ['a', 'b', 'c', 'x.one', 'x.two', 'told', 'nobody.takes.this'];

/** Events that actors send one another. */
const COSTLY = /^(a|told|\*|xstate.*)$/;

const guards = {
  hasFuel: ({ context }: Args) => context.fuel > 0,
  isEven: ({ context }: Args) => context.count % 2 === 0,
  isTold: ({ event }: Args) => event.type === 'told',
  never: () => false,
};

function actOf(pick: Pick, tag: string, hasChild: boolean): object {
  const say = log(({ context, event }: Args) => [{ tag, count: context.count, event: event.type }] as never);
  switch (pick(hasChild ? 10 : 7)) {
    case 0:
    case 1:
      return say;
    case 2:
      return ask(
        ({ context }: Args) =>
          ({ kind: 'commit', id: `${context.name}/${tag}/${context.count}`, boundary: 'UserMessage' }) as never,
      );
    case 3:
      return update(({ context }: Args) => ({ count: context.count + 1 }));
    case 4:
      return tell({ to: 'parent', event: { type: 'told' } });
    case 5:
      return drop(({ context }: Args) => `${context.name}/`);
    case 6:
      return update(({ context }: Args) => (context.count > 3 ? { count: 0 } : {}));
    case 7:
      return spawn(({ context }: Args) => [
        {
          src: 'child',
          id: `c${context.count % 3}`,
          input: { fuel: 3, count: context.count, name: `${context.name}.${tag}` },
        },
      ]);
    case 8:
      return stop(({ context }: Args) => `c${context.count % 3}`);
    default:
      return tell(({ context }: Args) =>
        context.count % 3 === 0 ? undefined : { to: `c${context.count % 3}`, event: { type: 'a' } },
      );
  }
}

function shuffledTargets(pick: Pick, all: readonly string[]): string {
  return all[pick(all.length)] as string;
}

interface Shape {
  path: string;
  states: Shape[];
}

/** A chart of up to three levels. With a child chart it spawns and invokes that. */
export function randomChart(pick: Pick, id: string, child?: AnyStateMachine): AnyStateMachine {
  const targets: string[] = [];
  const acts = (tag: string): object[] =>
    Array.from({ length: pick(3) }, (_, at) => actOf(pick, `${tag}${at}`, child !== undefined));
  const shape = (path: string, depth: number): Shape => {
    targets.push(`#${path}`);
    const inside = depth === 0 ? 0 : pick(3);
    return { path, states: Array.from({ length: inside }, (_, at) => shape(`${path}.s${at}`, depth - 1)) };
  };
  const tops = Array.from({ length: 2 + pick(2) }, (_, at) => shape(`${id}.t${at}`, 2));
  targets.push(`#${id}.end`);
  /** Transitions without an event from outside cost fuel. */
  const transition = (tag: string, costs = false, eventless = false): object => ({
    ...(eventless || pick(3) > 0 ? { target: shuffledTargets(pick, targets), reenter: pick(3) === 0 } : {}),
    ...(costs ? { guard: 'hasFuel' } : pick(2) === 0 ? { guard: Object.keys(guards)[pick(4)] } : {}),
    actions: [...(costs ? [update(({ context }: Args) => ({ fuel: context.fuel - 1 }))] : []), ...acts(tag)],
  });
  const on = (path: string): object =>
    Object.fromEntries(
      ['a', 'b', 'x.one', 'x.*', '*', 'told', 'xstate.done.actor.*'].flatMap((type) =>
        pick(3) === 0
          ? [
              [
                type,
                Array.from({ length: 1 + pick(2) }, (_, at) => transition(`${path}-${type}${at}`, COSTLY.test(type))),
              ],
            ]
          : [],
      ),
    );
  const stateOf = ({ path, states }: Shape): object => ({
    entry: acts(`${path}>`),
    exit: acts(`${path}<`),
    on: on(path),
    ...(pick(5) === 0 && { always: transition(`${path}~`, true, true) }),
    ...(child &&
      pick(4) === 0 && {
        invoke: { src: 'child', id: `i-${path}`, input: ({ context }: Args) => ({ ...context, fuel: 2, name: path }) },
      }),
    ...(states.length > 0 && {
      initial: 's0',
      states: Object.fromEntries(states.map((each, at) => [`s${at}`, stateOf(each)])),
    }),
  });
  const config = {
    id,
    context: ({ input }: { input: RandomContext }) => ({ ...input }),
    output: ({ event }: { event: object }) => ({ output: (event as { output?: unknown }).output }),
    initial: 't0',
    on: Object.fromEntries(pick(2) === 0 ? [['c', transition(`${id}-c`)]] : []),
    states: {
      ...Object.fromEntries(tops.map((each, at) => [`t${at}`, stateOf(each)])),
      end: { type: 'final', entry: acts('end>'), output: ({ context }: Args) => context.count },
    },
  };
  // The whole chart is entered once.
  for (const part of Object.values(config.on) as { reenter?: boolean }[]) part.reenter = false;
  const made = setup({
    types: {} as { context: RandomContext; input: RandomContext },
    actions: verbs<RandomContext, { type: string }, never, never>() as never,
    guards: guards as never,
    ...(child && { actors: { child } as never }),
  });
  return made.createMachine(config as never) as unknown as AnyStateMachine;
}
