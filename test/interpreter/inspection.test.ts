/** The inspection events of both interpreters, over whole runs with their real children. */
import { describe, expect, it } from 'vitest';
import type { AnyMachineSnapshot, AnyTransitionDefinition, InspectionEvent, StateValue } from 'xstate';
import { runMachine } from '../../machines/index.ts';
import { conversationChart } from '../../machines/internal.ts';
import { keyOf } from '../../src/diagrams/chartNodes.ts';
import { ConfigurationError, createAgent } from '../../src/index.ts';
import { type ChartActor, compiled, type Observer } from '../../src/runtime/interpreter/chartActor.ts';
import { inspected, observerOf } from '../../src/runtime/interpreter/inspection.ts';
import type { Interpreter } from '../../src/runtime/interpreter/interpreter.ts';
import { xstate } from '../../src/runtime/interpreter/xstate.ts';
import { Play } from '../paths/playScript.ts';
import { type RunScript, runScripts } from '../paths/runScripts.ts';
import { toolScripts } from '../paths/toolScripts.ts';
import { scripted } from '../support/scriptedReplies.ts';

interface InspectedActor {
  id: string;
  sessionId: string;
  _parent?: InspectedActor;
  logic: { id: string };
}

/** Ids of actors, counted from the root of each run. */
function namesFrom(events: readonly { actorRef: unknown }[]): (actor: unknown) => string | undefined {
  const ids = [...new Set(events.map(({ actorRef }) => (actorRef as InspectedActor).sessionId))];
  return (actor) => (actor ? `actor ${ids.indexOf((actor as InspectedActor).sessionId)}` : undefined);
}

/** What the snapshot answers for its own states, parts of them, and others. */
function matchesOf(snapshot: AnyMachineSnapshot): boolean[] {
  const value = snapshot.value as StateValue;
  const outer = typeof value === 'string' ? [value] : Object.keys(value);
  const asked: StateValue[] = [value, ...outer, ...outer.map((key) => ({ [key]: 'nowhere' })), 'nowhere', 'toString'];
  return asked.map((each) => snapshot.matches(each as never));
}

/** The story of a run as an inspector sees it, by kind of event. */
function shownBy(interpreter: Interpreter, { input, moves }: RunScript): Record<string, unknown[]> {
  const events: InspectionEvent[] = [];
  const played = new Play(runMachine as never, input, { interpreter, inspect: (event) => void events.push(event) });
  for (const move of moves) played.move(move);
  played.finish();
  const nameOf = namesFrom(events);
  const shown: Record<string, unknown[]> = {};
  for (const event of events) {
    const actor = nameOf(event.actorRef);
    shown[event.type] ??= [];
    const list = shown[event.type] as unknown[];
    if (event.type === '@xstate.actor') {
      const { _parent, logic } = event.actorRef as unknown as InspectedActor;
      list.push([actor, nameOf(_parent), logic.id]);
    } else if (event.type === '@xstate.event') list.push([actor, nameOf(event.sourceRef), event.event]);
    else if (event.type === '@xstate.microstep') {
      const { value, context, status, output } = event.snapshot as AnyMachineSnapshot;
      const taken = (event._transitions as AnyTransitionDefinition[]).map(keyOf);
      list.push(
        structuredClone([actor, event.event, taken, value, context, status, output]),
        matchesOf(event.snapshot as AnyMachineSnapshot),
      );
    } else if (event.type === '@xstate.snapshot') {
      const { value, context, status, output, children } = event.snapshot as AnyMachineSnapshot;
      list.push(structuredClone([actor, event.event, value, context, status, output, Object.keys(children)]));
    }
  }
  delete shown['@xstate.action'];
  return shown;
}

const scripts = [...runScripts, ...toolScripts];

describe('an inspector', () => {
  it.each(scripts.map((script) => [script.name, script] as const))(
    'receives the same events of a run from the compiled plan and from XState: %s',
    (_, script) => {
      const shown = shownBy(inspected, script);
      expect(shown).toEqual(shownBy(xstate, script));
      expect(shown['@xstate.microstep']?.length).toBeGreaterThan(5);
    },
  );

  it('that leaves hears nothing more, and others hear on', () => {
    const heard: string[] = [];
    const listener = (name: string): Observer => ({
      actor: () => undefined,
      event: (_, { type }) => void heard.push(`${name} ${type}`),
      transition: () => undefined,
      settled: () => undefined,
      stopped: () => undefined,
    });
    const world = { ask: () => undefined, drop: () => undefined, log: () => undefined };
    const root = compiled({ machine: conversationChart, input: {}, world, onError: () => undefined }) as ChartActor;
    const leave = root.system.observe(listener('first'));
    root.system.observe(listener('second'));
    root.start();
    heard.length = 0;
    leave();
    root.send({ type: 'unknown' });
    expect(heard).toEqual(['second unknown']);
  });
});

describe('the option `inspect` of an agent', () => {
  const typesOf = async (interpreter: 'compiled' | 'xstate'): Promise<Set<unknown>> => {
    const types = new Set<unknown>();
    const inspect = (event: unknown) => void types.add((event as { type: unknown }).type);
    const agent = createAgent({ model: scripted(['done']), interpreter, inspect });
    await (await agent.open('c')).send('hi').result;
    await agent.close();
    return types;
  };

  it('receives the steps of the charts, and those of XState itself if XState runs them', async () => {
    const compiledTypes = await typesOf('compiled');
    expect([...compiledTypes]).toEqual(expect.arrayContaining(['@xstate.actor', '@xstate.event', '@xstate.microstep']));
    expect(compiledTypes).not.toContain('@xstate.action');
    expect(await typesOf('xstate')).toContain('@xstate.action');
  });

  it.each([{}, { next: 1 }, { inspect: {} }])('refuses %j, which cannot observe', (option) => {
    expect(() => observerOf(option as never, 'c')).toThrow(ConfigurationError);
  });
});
