/**
 * Replays a recorded run. Invariant: a pure function of its arguments. It uses no model, tool, plugin, timer or
 * store, and the resulting log equals the recorded one byte for byte.
 */
import type { AnyActorRef, AnyMachineSnapshot } from 'xstate';
import type { Completion, Journal, LogEntry } from '../../machines/internal.ts';
import { type DeepPartial, mergedPolicies, modelsOf, type Policies } from '../agentPolicies.ts';
import { RunchartError } from '../errors.ts';
import { foldsOf } from '../log/conversationLog.ts';
import { redactor } from '../log/redact.ts';
import type { Model } from '../models/model.ts';
import type { Plugin } from '../plugins/plugin.ts';
import { noNames } from '../runtime/currentRequest.ts';
import { platformPorts } from '../runtime/hostPorts.ts';
import { inspected } from '../runtime/interpreter/inspection.ts';
import { Runtime } from '../runtime/runtime.ts';
import type { LogHandle } from '../stores/logStore.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { checkPlace } from '../validation.ts';
import type { RecordedDelivery } from './recorded.ts';
import { ReplayingJournal } from './replaying.ts';

/** The state of a chart: `CONVERSATION`, `RUN` or a child of it, by the actor's id. */
export interface ChartState {
  /** The name of the chart. */
  readonly chart: string;
  /** The id of the actor that runs it. */
  readonly actor: string;
  /** The state value of XState: a name, or nested names. */
  readonly value: unknown;
}

/** The options of `replayRecording` and `replayUntil`. */
export interface ReplayOptions {
  /** The lines of the recording, in their order. */
  recording: readonly RecordedDelivery[];
  /** The log at the start of the recording: the result of `conversation.log()` right after `open()`. */
  entries: readonly LogEntry[];
  /** The options that the charts read. Of models and plugins only names and phases are used. */
  model: Pick<Model, 'id'>;
  /** The plugins of the agent. */
  plugins?: readonly Plugin[];
  /** The policies of the agent. */
  policies?: DeepPartial<Policies>;
  /** The secrets of the agent, with those of its model. */
  secrets?: readonly string[];
}

const handle: LogHandle = {
  async *read() {},
  appendNow() {},
  async append() {},
  async close() {},
};

const unusedModel = (id: string): Model => ({
  id,
  stream() {
    throw new Error('a replay calls no model');
  },
});

/** A recording replayed up to one of its lines. */
export interface Replayed {
  /** Includes the entries at the start. */
  readonly log: LogEntry[];
  /** The states of the charts there, the conversation's first. */
  readonly charts: readonly ChartState[];
}

/**
 * Returns the log after the recording, with the entries at the start. Throws RunchartError with code `replay` if the
 * recording answers an effect that these charts did not request with these options.
 */
export const replayRecording = (options: ReplayOptions): LogEntry[] => replayUntil(options).log;

/**
 * Returns the log and the charts after the first `until` lines of the recording, by default after all. Throws
 * ConfigurationError if `until` is not a whole number.
 */
export function replayUntil(options: ReplayOptions, until?: number): Replayed {
  checkPlace(until, 0);
  const { secrets = [], plugins = [] } = options;
  const entries = entriesBefore(options.recording, options.entries);
  const recording = options.recording.slice(0, until);
  const [head] = entries;
  if (head?.type !== 'conversation') {
    throw new RunchartError('replay', 'a replay needs the entries its recording began with, from the first on');
  }
  const policies = mergedPolicies(options.policies);
  const [first, ...others] = modelsOf(unusedModel(options.model.id), policies);
  let replaying: ReplayingJournal | undefined;
  const journal = (embedded: Journal): Journal => {
    replaying = new ReplayingJournal(embedded, recording);
    return replaying;
  };
  const actors = new Set<AnyActorRef>();
  const runtime = new Runtime({
    id: head.conversationId,
    cwd: head.cwd,
    handle,
    entries: [...entries],
    folds: foldsOf(entries),
    instructions: '',
    models: [first ?? unusedModel(options.model.id), ...others],
    toolbox: new Toolbox([]),
    plugins,
    policies,
    named: noNames,
    ports: { ...platformPorts, now: () => head.at, setTimer: () => () => {}, journal },
    redact: redactor(secrets),
    schemas: new Map(),
    attended: true,
    interpreter: inspected,
    observer: { charts: (event) => void actors.add((event as { actorRef: AnyActorRef }).actorRef) },
  });
  runtime.start();
  const replayed = { log: runtime.log.entries.slice(), charts: chartsOf(actors) };
  runtime.stop();
  void runtime.log.close();
  const strayed = replaying?.strayed;
  if (strayed === undefined) return replayed;
  throw new RunchartError(
    'replay',
    `the recording answers ${strayed}, which was not asked for: replay it with the options of its agent`,
  );
}

/**
 * The entries that the recording does not lead to. An opening that continues a run by itself has written the first entries of
 * that run when it resolves.
 */
function entriesBefore(recording: readonly RecordedDelivery[], entries: readonly LogEntry[]): readonly LogEntry[] {
  const ids = recording.flatMap((line) => (line.kind === 'delivery' ? [runOfDelivery(line.completion)] : []));
  const [resumed, ...others] = ids;
  if (resumed === undefined || !others.includes(resumed)) return entries;
  const at = entries.findIndex(({ type, runId }) => type === 'run-resumed' && runId === resumed);
  return at < 0 ? entries : entries.slice(0, at);
}

/** The run that a resumption begins, or to which the answer of an effect belongs. */
function runOfDelivery(completion: Completion): string | undefined {
  if ('id' in completion) return completion.id.split('/')[0];
  if (completion.type !== 'act' || completion.event.type !== 'resume.requested') return undefined;
  const { runId } = completion.event as { runId?: unknown };
  return typeof runId === 'string' ? runId : undefined;
}

function chartsOf(actors: ReadonlySet<AnyActorRef>): ChartState[] {
  const living = [...actors].filter((actor) => actor.getSnapshot().status === 'active');
  return living.map((actor) => {
    const { machine, value } = actor.getSnapshot() as AnyMachineSnapshot;
    return { chart: machine.id, actor: actor.id, value };
  });
}
