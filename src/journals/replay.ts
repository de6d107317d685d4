/**
 * A recorded run, played again. Rule: a pure function of its arguments; no model, tool, plugin, timer or store is
 * touched, and the log it answers with is the recorded one, byte for byte.
 */
import type { AnyActorRef, AnyMachineSnapshot } from 'xstate';
import type { Journal, LogEntry } from '../../machines/internal.ts';
import { RunchartError } from '../errors.ts';
import { redactor } from '../log/redact.ts';
import type { Model } from '../models/model.ts';
import type { Plugin } from '../plugins/plugin.ts';
import { type DeepPartial, mergedPolicies, modelsOf, type Policies } from '../policies.ts';
import { inspected } from '../runtime/interpreter/inspection.ts';
import { platformPorts } from '../runtime/ports.ts';
import { Runtime } from '../runtime/runtime.ts';
import type { LogHandle } from '../stores/store.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { checkPlace } from '../validation.ts';
import type { RecordedDelivery } from './recorded.ts';
import { ReplayingJournal } from './replaying.ts';

/** A chart as it stood: `CONVERSATION`, `RUN` and what ran under it, by the actor's id. */
export interface ChartState {
  readonly chart: string;
  readonly actor: string;
  /** The state value of XState: a name, or names within names. */
  readonly value: unknown;
}

export interface ReplayOptions {
  recording: readonly RecordedDelivery[];
  /** The log as it was when the recording began: what `conversation.log()` gives right after `open()`. */
  entries: readonly LogEntry[];
  /** What charts read of the agent's options. Models and plugins are asked for their names and phases only. */
  model: Pick<Model, 'id'>;
  plugins?: readonly Plugin[];
  policies?: DeepPartial<Policies>;
  /** Those of the agent, its model's included. */
  secrets?: readonly string[];
}

const handle: LogHandle = {
  async *read() {},
  appendNow() {},
  async append() {},
  async close() {},
};

const silent = (id: string): Model => ({
  id,
  stream() {
    throw new Error('a replay calls no model');
  },
});

/** A recording played up to some line of it. */
export interface Replayed {
  /** The entries it began with included. */
  readonly log: LogEntry[];
  /** The charts as they stand there, the conversation's first. */
  readonly charts: readonly ChartState[];
}

/**
 * The log after the recording, the entries it began with included. Throws RunchartError with code `replay` where the
 * recording answers an effect that these charts, with these options, never asked for.
 */
export const replayRecording = (options: ReplayOptions): LogEntry[] => replayUntil(options).log;

/**
 * The log and the charts behind the first `until` lines of the recording; behind all where it is not given. Throws
 * ConfigurationError where `until` is no whole number.
 */
export function replayUntil(options: ReplayOptions, until?: number): Replayed {
  checkPlace(until, 0);
  const { entries, secrets = [], plugins = [] } = options;
  const recording = options.recording.slice(0, until);
  const [head] = entries;
  if (head?.type !== 'conversation') {
    throw new RunchartError('replay', 'a replay needs the entries its recording began with, from the first on');
  }
  const policies = mergedPolicies(options.policies);
  const [first, ...others] = modelsOf(silent(options.model.id), policies);
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
    instructions: '',
    models: [first ?? silent(options.model.id), ...others],
    toolbox: new Toolbox([]),
    plugins,
    policies,
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

function chartsOf(actors: ReadonlySet<AnyActorRef>): ChartState[] {
  const living = [...actors].filter((actor) => actor.getSnapshot().status === 'active');
  return living.map((actor) => {
    const { machine, value } = actor.getSnapshot() as AnyMachineSnapshot;
    return { chart: machine.id, actor: actor.id, value };
  });
}
