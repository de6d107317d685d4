/**
 * Simulated tools: they succeed, fail, suspend, hang or answer late. Invariant: the tape determines their behaviour.
 * Each execution is compared with the log before it begins.
 */

import { IMAGE } from '../../../src/testing/simulation/host.ts';
import { SECRET } from '../../../src/testing/simulation/world/simulatedModel.ts';
import { defineTool, type Tool, type ToolContext, toolResult } from '../../../src/tools/tool.ts';
import type { CheckedWorld } from '../checks/checkedWorld.ts';
import { callKey } from '../checks/lifeFacts.ts';
import type { ToolExecutions, ToolTraits } from '../checks/toolExecutions.ts';

const FAULTS = [
  ...(['throws', 'throwsAtOnce', 'errs', 'deaf', 'late', 'suspends', 'odd', 'twice', 'meddles'] as const),
  // Add a new one at the end, because tapes refer to them by position.
  'long',
] as const;
type Fault = (typeof FAULTS)[number];
/** More bytes than a small limit allows, and few characters. */
const LONG = '\u8a9e'.repeat(700);

const SLEEP_MS = 700;

/** Arguments with one text. */
export const textSchema = {
  '~standard': {
    version: 1 as const,
    vendor: 'runchart-simulation',
    jsonSchema: {
      input: () => ({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }),
      output: () => ({ type: 'object' }),
    },
    validate: (value: unknown) => {
      const text = typeof value === 'object' && value !== null ? (value as { text?: unknown }).text : undefined;
      return typeof text === 'string'
        ? { value: { text } }
        : { issues: [{ message: 'expected text', path: ['text'] }] };
    },
  },
};

const KINDS: Readonly<Record<string, ToolTraits>> = {
  note: {},
  look: { readOnly: true },
  fetch: { idempotent: true },
  pay: { needsApproval: true },
  ask: { asks: true },
  save: { writes: true },
  show: { shows: true },
  rest: { sleeps: true },
};

export function simulatedTools(world: CheckedWorld, executions: ToolExecutions): Tool[] {
  return Object.entries(KINDS).map(([name, kind]) => {
    const { asks: _a, writes: _w, shows: _h, sleeps: _l, ...declared } = kind;
    return defineTool({
      ...declared,
      name,
      description: `A simulated tool, ${name}.`,
      parameters: textSchema,
      execute: (args: { text: string }, context) => {
        world.check(Object.isFrozen(args), 'I12', () => `the arguments of ${context.callId} can be changed`);
        const end = executions.begin(name, kind, { ...args }, context);
        let answered: unknown;
        try {
          answered = act(world, name, kind, args, context);
        } finally {
          if (answered instanceof Promise) answered.then(end, end);
          else end();
        }
        return answered;
      },
    });
  });
}

function act(
  world: CheckedWorld,
  name: string,
  kind: ToolTraits,
  args: { text: string },
  context: ToolContext,
): unknown {
  const fault = world.fault('tool', world.profile.tool) ? world.tape.pick(FAULTS) : undefined;
  if (fault) world.count(`tool-${fault}`);
  if (fault === 'throwsAtOnce') throw new Error(`tool said no with ${SECRET}`);
  if (fault === 'twice') return twice;
  if (fault === 'meddles') Reflect.set(args, 'text', 'changed by the tool');
  return answer(world, name, kind, args, context, fault);
}

async function answer(
  world: CheckedWorld,
  name: string,
  kind: ToolTraits,
  { text }: { text: string },
  context: ToolContext,
  fault: Fault | undefined,
): Promise<unknown> {
  const { signal, decision, callId, conversationId } = context;
  if (fault === 'deaf') return new Promise(() => undefined);
  const settled = world.tape.chance(0.7) ? world.wait('tool') : undefined;
  const heeds = fault !== 'late' && world.tape.chance(0.7);
  await (settled && heeds ? Promise.race([settled, whenAborted(signal)]) : settled);
  switch (fault) {
    case 'throws':
      throw new Error(`tool said no with ${SECRET}`);
    case 'errs':
      return toolResult.error(`tool said no: ${text}`, 'refused_by_tool');
    case 'suspends':
      return toolResult.pending({ reason: 'more', payload: { text } });
    case 'odd':
      return { deep: [undefined, 1n, () => SECRET] };
    case 'long':
      return `tool said ${LONG}`;
  }
  if (kind.asks && (!decision || world.fault('tool-asks-again', 0.2)))
    return toolResult.pending({ reason: 'question', payload: { text } });
  if (kind.sleeps) await slept(world, context);
  // A second call of a tool that returns the time has another result.
  const time = kind.sleeps ? ` at ${world.elapsedMs}` : '';
  const output = `tool said ${name} ${text}${time} ${SECRET}`;
  if (kind.shows) return [{ type: 'text', text: output }, IMAGE];
  if (!kind.writes) return output;
  world.facts.wrote(callKey(conversationId, callId));
  return toolResult.success(output, { state: { [text]: world.tape.next(2) } });
}

/** Sleeps on the agent's clock, and checks the duration that the tool received. */
async function slept(world: CheckedWorld, { sleep, now, signal, callId }: ToolContext): Promise<void> {
  const [since, elapsed] = [now(), world.elapsedMs];
  const { offsetMs } = world.clock;
  await sleep(SLEEP_MS).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  if (signal.aborted) return;
  const [took, real] = [now() - since, world.elapsedMs - elapsed];
  const fits = real >= SLEEP_MS && took === real + world.clock.offsetMs - offsetMs;
  world.check(fits, 'CLOCK', () => `${callId} slept ${SLEEP_MS} ms, and its clock advanced ${took} in ${real}`);
}

/** A thenable that resolves twice, with another text the second time. */
const twice = {
  // biome-ignore lint/suspicious/noThenProperty: a promise of somebody else's making is what is simulated
  then(resolve: (value: string) => void): void {
    resolve('tool said this');
    resolve('tool said that');
  },
};

const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
