/**
 * Computes the states of the charts after each entry of a log. Invariant: a chart writes an entry in one of its states,
 * so the entry proves that the state was entered. The path between two such states is computed. Observed transitions
 * replace it (`observedActors.ts`). `activeStates.ts` derives the display from a path.
 */
import type { LogEntry } from '../../../machines/vocabulary.ts';
import type { CallFacts, LogFacts, RunFacts } from '../logFacts.ts';
import type { Leg, Walker } from './inferredPath.ts';

/** One move of an actor: the transitions of one step, and the innermost state after it. */
export interface Move {
  /** The index of the entry after which the move was made. */
  readonly at: number;
  readonly legs: readonly Leg[];
  readonly leaf: string;
  /** The innermost states of parallel regions. Undefined if `leaf` is the only one. */
  readonly leaves?: readonly string[];
  /** The log time at which the state was entered. */
  readonly time: number;
}

/** The moves of one actor, first to last. */
export type Path = readonly Move[];

/** Builds a path from marks. A mark is a state that an entry proves. */
class PathBuilder {
  readonly moves: Move[] = [];
  readonly #walker: Walker;
  #leaf: string | undefined;
  #passing: string | undefined;

  constructor(walker: Walker) {
    this.#walker = walker;
  }

  get leaf(): string | undefined {
    return this.#leaf;
  }

  begin(at: number, time: number): void {
    this.#leaf = this.#walker.first;
    this.moves.push({ at, legs: [], leaf: this.#leaf, time });
  }

  /** The path to the next state leads through this one. */
  passThrough(leaf: string): void {
    this.#passing = leaf;
  }

  /** Moves through each of these states in turn. A state that cannot be reached is entered without legs. */
  moveTo(at: number, time: number, ...leaves: readonly string[]): void {
    const [next] = leaves;
    const passing = this.#passing !== undefined && next !== undefined && next !== this.#leaf ? [this.#passing] : [];
    if (passing.length > 0) this.#passing = undefined;
    for (const leaf of [...passing, ...leaves]) {
      if (this.#leaf === leaf) continue;
      const legs = this.#leaf === undefined ? [] : (this.#walker.walk(this.#leaf, leaf) ?? []);
      this.#leaf = leaf;
      if (legs.length === 0) this.moves.push({ at, legs, leaf, time });
      // Each event begins a new step.
      let step: Leg[] = [];
      for (const [index, leg] of legs.entries()) {
        step.push(leg);
        const next = legs[index + 1];
        if (next && next.event === '') continue;
        this.moves.push({ at, legs: step, leaf: next ? deepest(this.#walker, leg.target) : leaf, time });
        step = [];
      }
    }
  }
}

const OUTCOMES: Readonly<Record<string, string>> = {
  completed: 'RUN.NaturalEnd',
  interrupted: 'RUN.Cancelled',
  error: 'RUN.Error',
};
const BROKEN = new Set(['store', 'model', 'state', 'tool', 'crash']);

function outcomeOf(entry: LogEntry): string {
  if (entry.type === 'run-suspended') return 'RUN.Suspended';
  if (entry.type !== 'run-stop') return 'RUN.NaturalEnd';
  const { reason, cause = '' } = entry;
  if (reason === 'error' && cause === 'timeout') return 'RUN.Cancelled';
  if (reason === 'error' && cause !== '' && !BROKEN.has(cause)) return 'RUN.Terminate';
  if (reason === 'completed' && cause !== '' && cause !== 'end_turn') return 'RUN.Terminate';
  return OUTCOMES[reason] ?? 'RUN.Error';
}

const AT_GATE = new Set(['RUN.active.RunStart', 'RUN.active.CommitUser', 'RUN.active.ResumeReplay0']);
const OF_A_CALL = new Set(['tool-allowed', 'tool-started', 'tool-suspended', 'tool-result']);

/** Adds the mark of a run's entry. */
function markRun(path: PathBuilder, entry: LogEntry, at: number): void {
  const go = (...leaves: string[]): void => path.moveTo(at, entry.at, ...leaves.map((leaf) => `RUN.${leaf}`));
  const atGate = AT_GATE.has(path.leaf ?? '');
  if (OF_A_CALL.has(entry.type)) {
    if (atGate) go('active.ResumeReplay0');
    else if (path.leaf === 'RUN.active.CommitAssistant.committing') go('active.ToolRound.running');
    return;
  }
  switch (entry.type) {
    case 'user-message':
      if (entry.kind === 'steer') go('active.StepPrepare.hearing');
      return;
    case 'agent-output':
    case 'model-reply':
      return go('active.AfterInference');
    case 'model-retry':
      return go('active.LlmCall.backingOff');
    case 'continuation':
      return entry.why === 'resume' ? undefined : go('active.LlmCall.attempting');
    case 'checkpoint':
      return markCheckpoint(entry.boundary, path, go);
    case 'run-stop':
    case 'run-suspended':
      return path.moveTo(at, entry.at, outcomeOf(entry), 'RUN.CommitFinished');
    default:
      return undefined;
  }
}

function markCheckpoint(boundary: string, path: PathBuilder, go: (...leaves: string[]) => void): void {
  const { leaf = '' } = path;
  if (boundary === 'UserMessage') go('active.CommitUser');
  else if (boundary === 'AssistantTurnCommitted') go('active.CommitAssistant.committing');
  else if (boundary === 'RunFinished') go('Done');
  else if (AT_GATE.has(leaf)) {
    // The checkpoint belongs to the gate: its replay is durable, and the run continues after it.
    go('active.ResumeReplay0');
    path.passThrough('RUN.active.CommitReplay0');
  } else if (leaf.startsWith('RUN.active.ToolRound') || leaf.startsWith('RUN.active.CommitAssistant')) {
    go('active.CommitTool');
  }
}

/** Returns the path of RUN for one run. */
export function runPath(walker: Walker, entries: readonly LogEntry[], run: RunFacts): Path {
  const path = new PathBuilder(walker);
  for (let at = run.from; at <= run.to; at++) {
    const entry = entries[at];
    if (!entry || entry.runId !== run.runId) continue;
    if (at === run.from) path.begin(at, entry.at);
    markRun(path, entry, at);
  }
  return path.moves;
}

/** Returns the path of CONVERSATION for the whole log. */
export function conversationPath(walker: Walker, entries: readonly LogEntry[]): Path {
  const path = new PathBuilder(walker);
  const first = entries[0];
  if (!first) return [];
  path.begin(0, first.at);
  let isOver: string | undefined;
  for (const [at, entry] of entries.entries()) {
    const go = (leaf: string): void => path.moveTo(at, entry.at, `CONVERSATION.${leaf}`);
    if (entry.type === 'conversation') go('idle.ready');
    else if (entry.type === 'run-started' || entry.type === 'run-resumed') go('busy.active');
    else if (entry.type === 'run-suspended') isOver = 'waiting';
    else if (entry.type === 'run-stop') {
      isOver = entry.reason === 'error' ? 'idle.error' : 'idle.ready';
      if (path.leaf === 'CONVERSATION.waiting') go('closing.storing');
    } else if (entry.type === 'checkpoint' && entry.boundary === 'RunFinished' && isOver) go(isOver);
  }
  return path.moves;
}

/** Returns the path of TOOL_CALL for one call. */
export function callPath(walker: Walker, entries: readonly LogEntry[], call: CallFacts): Path {
  const path = new PathBuilder(walker);
  const go = (at: number, ...leaves: string[]): void =>
    path.moveTo(at, entries[at]?.at ?? 0, ...leaves.map((leaf) => `TOOL_CALL.${leaf}`));
  const marks = [
    ...call.starts.map(({ at }) => ({ at, leaves: ['ExecuteTool.attempting'] })),
    ...call.suspensions.map(({ at }) => ({ at, leaves: ['Suspended', 'Done'] })),
    ...(call.result && !isStopped(call) ? [{ at: call.result.at, leaves: [stateOf(call), 'Done'] }] : []),
  ].sort((a, b) => a.at - b.at);
  for (const { at, leaves } of marks) {
    // A replay is a new actor, so its path begins again.
    if (path.moves.length === 0 || path.leaf === 'TOOL_CALL.Done') path.begin(at, entries[at]?.at ?? 0);
    go(at, ...leaves);
  }
  return path.moves;
}

/** A cancelled round stops the actor in its current state. A denied call ends by itself. */
const isStopped = ({ result, suspensions }: CallFacts): boolean =>
  result?.outcome === 'cancelled' && suspensions.at(-1)?.decision === undefined;

function stateOf({ result, starts }: CallFacts): string {
  if (result?.outcome === 'succeeded') return 'Succeeded';
  return starts.length === 0 && result?.code !== undefined ? 'Blocked' : 'Failed';
}

/** Returns the path of TOOL_ROUND for the calls of one run. */
export function roundPath(walker: Walker, entries: readonly LogEntry[], { runs, calls }: LogFacts, run: number): Path {
  const facts = runs[run];
  const path = new PathBuilder(walker);
  if (!facts) return [];
  const ids = new Set(
    [...calls.values()]
      .filter(({ requestedAt }) => requestedAt >= facts.from && requestedAt <= facts.to)
      .map((c) => c.callId),
  );
  for (let at = facts.from; at <= facts.to; at++) {
    const entry = entries[at];
    if (!entry || entry.runId !== facts.runId) continue;
    if (
      OF_A_CALL.has(entry.type) &&
      'callId' in entry &&
      ids.has(entry.callId ?? '') &&
      path.leaf !== 'TOOL_ROUND.Running'
    ) {
      path.begin(at, entry.at);
    } else if (entry.type === 'checkpoint' && entry.boundary === 'ToolResultsCommitted' && path.leaf) {
      path.moveTo(at, entry.at, 'TOOL_ROUND.Collected');
    } else if (entry.type === 'run-stop' && path.leaf === 'TOOL_ROUND.Running')
      path.moveTo(at, entry.at, 'TOOL_ROUND.Stopped');
  }
  return path.moves;
}

function deepest(walker: Walker, id: string): string {
  const state = walker.tree.states.get(id);
  const child = state?.states.find(({ key }) => key === state.initial);
  return child ? deepest(walker, child.id) : id;
}
