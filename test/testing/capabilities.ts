/**
 * The capabilities of an agent beyond the plainest one, as data for the exploration.
 * `src/testing/agentPaths/transitionNeeds.ts` contains the transitions that each capability opens.
 */

import { noPhases } from '../../machines/cases/toolRound.cases.ts';
import {
  type ChartPolicies,
  defaultPolicies,
  type EffectValue,
  type Phase,
  type RoundCall,
  type Settings,
} from '../../machines/internal.ts';
import { PHASES } from '../../src/plugins/plugin.ts';
import type { AgentPathsOptions } from '../../src/testing/agentPaths/pathOptions.ts';
import type { AgentModel, Behaviour } from '../../src/testing/agentPaths/search/callBehaviour.ts';
import { Exploration } from '../../src/testing/agentPaths/search/exploration.ts';
import { reachableIn } from '../../src/testing/agentPaths/search/graphCover.ts';

const call = (name: string, gated = false): RoundCall => ({
  callId: '',
  name,
  gated,
  readOnly: false,
  fingerprint: name,
});
const done: EffectValue = { kind: 'succeeded', content: [{ type: 'text', text: 'done' }] };
const tool = (name: string, answers: Record<string, EffectValue>, changes: Partial<Behaviour> = {}): Behaviour => ({
  tool: name,
  args: {},
  edits: [],
  call: call(
    name,
    Object.keys(answers).some((key) => key.startsWith('gate')),
  ),
  idempotent: false,
  answers: new Map(Object.entries(answers)),
  ...changes,
});
const plain = tool('plain', { 'tool 0 ': done });
const asks: EffectValue = { kind: 'suspend', reason: 'permission' };
const approval = tool('asks', {
  'gate 0 ': asks,
  'gate 1 approve': { kind: 'allow' },
  'gate 1 edit': { kind: 'allow' },
  'tool 1 approve': done,
  'tool 1 edit': done,
});
const pending: EffectValue = { kind: 'pending', reason: 'form' };

/** Changes of the plainest agent. */
export interface Capability {
  /** It is looked at without the plain tool beside it. */
  alone?: true;
  /** It opens more transitions together with an approval. */
  withApproval?: true;
  /** The text after "n need …". */
  needs: string;
  behaviours?: readonly Behaviour[];
  policies?: Partial<ChartPolicies>;
  phases?: Partial<Record<Phase, boolean>>;
  says?: readonly (readonly [key: string, value: EffectValue])[];
  settings?: Partial<Settings>;
  /** The policy `context` looks at nothing. */
  looks?: false;
  bounds?: AgentPathsOptions['bounds'];
}

const hears = (phase: Phase): Capability => ({ needs: `a plugin with ${phase}`, phases: { [phase]: true } });
const beside = (capability: Capability): Capability => ({ ...capability, withApproval: true });
const terminate: EffectValue = { kind: 'terminate', by: 'plugin', reason: 'enough' };
const policy = (name: string, policies: Partial<ChartPolicies>): Capability => ({
  needs: `the policy ${name}`,
  policies,
});
const limit = (name: keyof ChartPolicies['limits'], value: number): Capability =>
  policy(`limits.${name}`, { limits: { ...defaultPolicies.limits, [name]: value } });
const writes = (value: number): EffectValue => ({ kind: 'succeeded', content: [], writes: { key: value } });

const atLimits = (needs: string, limits: Partial<ChartPolicies['limits']>, more: Partial<Capability>): Capability => ({
  ...more,
  needs,
  policies: { limits: { ...defaultPolicies.limits, ...limits } },
});
const again = tool('again', { 'gate 0 ': asks, 'gate 1 approve': asks, 'gate 2 approve': { kind: 'allow' } });
const waits = tool('waits', { 'tool 0 ': pending, 'tool 1 approve': done, 'tool 1 answer': done });
const waitsAgain = tool('waitsAgain', {
  'tool 0 ': pending,
  'tool 1 approve': pending,
  'tool 1 answer': pending,
});
const unlooked: Partial<Capability> = { looks: false };
const WITHOUT_CONTEXT: Capability = { ...unlooked, needs: 'nothing in the policy context' };
/** The default thresholds of the policy `context`. */
const looked = { warn: 0.8, prune: 0.8, compact: 0.8, exhaust: 0.95 };
export const CAPABILITIES: readonly Capability[] = [
  { needs: 'a tool', behaviours: [plain] },
  { needs: 'an approval', behaviours: [approval] },
  { needs: 'an idempotent tool', behaviours: [{ ...plain, idempotent: true }] },
  { needs: 'a tool that waits (pending)', behaviours: [waits], alone: true },
  { needs: 'a call that asks again on replay', behaviours: [again], alone: true },
  {
    needs: 'a plugin that blocks',
    behaviours: [tool('blocked', { 'gate 0 ': { kind: 'block', code: 'blocked', text: 'no' } })],
  },
  {
    needs: 'arguments that are refused',
    behaviours: [{ ...plain, call: { ...call('bad'), refused: { code: 'invalid_args', text: 'no' } } }],
  },
  ...PHASES.map((phase) => (phase === 'afterToolExecute' ? beside(hears(phase)) : hears(phase))),
  {
    needs: 'a plugin that ends the run before the model is asked',
    phases: { beforeInference: true },
    says: [['beforeInference 1 ', terminate]],
  },
  {
    needs: 'a plugin that ends the run behind a reply',
    phases: { afterInference: true },
    says: [['afterInference 1 ', terminate]],
  },
  {
    needs: 'a plugin or hook that goes on where the run would end',
    phases: { naturalEnd: true },
    says: [['naturalEnd 1 ', { kind: 'continue', why: 'stop_hook', text: 'go on' }]],
  },
  beside(policy('onToolFailure', { onToolFailure: 'failRun' })),
  policy('steerAt', { steerAt: 'afterTool' }),
  beside(policy('decisionsDuringRound', { decisionsDuringRound: 'atGate' })),
  policy('onPartialSuspend', { onPartialSuspend: 'wait' }),
  policy('toolExecution', { toolExecution: 'sequential' }),
  policy('toolRetry', { toolRetry: { attempts: 2, baseMs: 1, factor: 1, capMs: 1, jitter: 0 } }),
  policy('modelRetry', { modelRetry: { ...defaultPolicies.modelRetry, attempts: 1 } }),
  beside(policy('whileSuspended', { whileSuspended: 'denyAndRun' })),
  policy('promoteFollowUpOn', { promoteFollowUpOn: [] }),
  policy('onEmptyReply', { onEmptyReply: 'accept' }),
  policy('onEmptyReply', { onEmptyReply: 'retry' }),
  limit('turns', 1),
  limit('suspensionsPerCall', 1),
  limit('emptyReplies', 1),
  limit('identicalCalls', 1),
  limit('runMs', 1000),
  {
    needs: 'a fallback model',
    settings: { models: ['scripted', 'other'] },
    policies: { modelRetry: { ...defaultPolicies.modelRetry, attempts: 1 } },
  },
  {
    needs: 'two calls that write one key of the state differently',
    behaviours: [
      tool('one', { 'tool 0 ': writes(1) }),
      tool('two', { 'gate 0 ': { kind: 'allow' }, 'tool 0 ': writes(2) }),
    ],
  },
  {
    needs: 'a plugin or hook that forbids a summary',
    phases: { preCompact: true },
    says: [1, 2, 3].map(
      (turn) => [`preCompact ${turn} `, { kind: 'compact', block: { by: 'plugin', reason: 'no' } }] as const,
    ),
  },
  atLimits(
    'a call that asks again on replay, and the policy limits.suspensionsPerCall',
    { suspensionsPerCall: 1 },
    { behaviours: [again], alone: true },
  ),
  atLimits(
    'a tool that waits again, and the policy limits.suspensionsPerCall',
    { suspensionsPerCall: 1 },
    { behaviours: [waitsAgain], alone: true },
  ),
  {
    needs: 'a call that a gate refuses',
    behaviours: [tool('refused', { 'gate 0 ': { kind: 'refuse', code: 'invalid_args', text: 'no' } })],
  },
  { needs: 'a tool that waits again, beside another', behaviours: [waitsAgain] },
  { needs: 'three calls in a round (bounds.calls)', behaviours: [approval], bounds: { calls: 3, troubles: 0 } },
  atLimits('the policy limits.turns, and nothing in the policy context', { turns: 1 }, unlooked),
  {
    ...unlooked,
    needs: 'a tool that waits again, beside another, and nothing in the policy context',
    behaviours: [waitsAgain],
  },
];

export function modelOf(capabilities: readonly Capability[]): AgentModel {
  const policies = Object.assign({}, defaultPolicies, ...capabilities.map((each) => each.policies));
  const settings: Settings = Object.assign(
    {
      conversationId: 'tested',
      policies,
      phases: Object.assign({}, noPhases, ...capabilities.map((each) => each.phases)),
      models: ['scripted'],
      ...(capabilities.every(({ looks }) => looks !== false) && { context: looked }),
    },
    ...capabilities.map((each) => each.settings),
  );
  const behaviours = capabilities.flatMap((each) => each.behaviours ?? []);
  const phases = new Map(capabilities.flatMap((each) => each.says ?? []));
  const idempotent = new Set(behaviours.flatMap((each) => (each.idempotent ? [each.tool] : [])));
  const frame = { system: '', tools: [] };
  return { settings, surroundings: { phases, frame, wanted: new Set() }, behaviours, idempotent };
}

export function reachOf(capabilities: readonly Capability[]): Set<string> {
  const bounds = Object.assign({}, ...capabilities.map((each) => each.bounds));
  return reachableIn(new Exploration(modelOf(capabilities), { bounds }).graph());
}

/** Returns for each transition the first capability that opens it. */
export function reach(): { [key: string]: string } {
  const [looking, without] = [reachOf([]), reachOf([WITHOUT_CONTEXT])];
  const reached = new Set([...looking].filter((key) => without.has(key)));
  const found: { [key: string]: string } = {};
  const learn = (opened: ReadonlySet<string>, needs: string): void => {
    for (const key of opened) {
      if (reached.has(key)) continue;
      reached.add(key);
      found[key] = needs;
    }
  };
  learn(looking, 'the policy context');
  learn(without, WITHOUT_CONTEXT.needs);
  const [tool, approval] = CAPABILITIES;
  if (!tool || !approval) return found;
  for (const each of CAPABILITIES) learn(reachOf(each === tool || each.alone ? [each] : [tool, each]), each.needs);
  for (const each of CAPABILITIES)
    if (each.withApproval)
      learn(reachOf([approval, each, { needs: '', bounds: { calls: 1 } }]), `an approval and ${each.needs}`);
  return found;
}
