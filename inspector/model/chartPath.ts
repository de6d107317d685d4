/**
 * Where the charts stood behind each entry of a log. Rule: an entry is written in one state of its chart, so it says that
 * this state was entered; what lies between two such states is walked. Observed transitions, where there are any, take
 * its place (`observed.ts`).
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { CallFacts, LogFacts, RunFacts } from './facts.ts';
import type { Leg, Walker } from './walk.ts';

/** One move of an actor: the legs of one step, and the innermost state behind it. */
export interface Move {
  /** Index of the entry behind which it was made. */
  readonly at: number;
  readonly legs: readonly Leg[];
  readonly leaf: string;
  /** Log time at which the state was entered. */
  readonly time: number;
}

/** The moves of one actor, first to last. */
export type Path = readonly Move[];

/** Builds a path: each mark is a state that an entry says was entered. */
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

  /** The way to the next state leads through this one. */
  passing(leaf: string): void {
    this.#passing = leaf;
  }

  /** Through each of these states in turn; one that no way leads to is jumped to. */
  to(at: number, time: number, ...leaves: readonly string[]): void {
    const [next] = leaves;
    const passing = this.#passing !== undefined && next !== undefined && next !== this.#leaf ? [this.#passing] : [];
    if (passing.length > 0) this.#passing = undefined;
    for (const leaf of [...passing, ...leaves]) {
      if (this.#leaf === leaf) continue;
      const legs = this.#leaf === undefined ? [] : (this.#walker.walk(this.#leaf, leaf) ?? []);
      this.#leaf = leaf;
      if (legs.length === 0) this.moves.push({ at, legs, leaf, time });
      // What an event begins is a step of its own.
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

/** What an entry of a run says of its chart. */
function markRun(path: PathBuilder, entry: LogEntry, at: number): void {
  const go = (...leaves: string[]): void => path.to(at, entry.at, ...leaves.map((leaf) => `RUN.${leaf}`));
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
      return path.to(at, entry.at, outcomeOf(entry), 'RUN.CommitFinished');
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
    // The gate's own: what it replayed is durable, and the run goes on behind it.
    go('active.ResumeReplay0');
    path.passing('RUN.active.CommitReplay0');
  } else if (leaf.startsWith('RUN.active.ToolRound') || leaf.startsWith('RUN.active.CommitAssistant')) {
    go('active.CommitTool');
  }
}

/** The path of RUN for one run. */
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

/** The path of CONVERSATION over the whole log. */
export function conversationPath(walker: Walker, entries: readonly LogEntry[]): Path {
  const path = new PathBuilder(walker);
  const first = entries[0];
  if (!first) return [];
  path.begin(0, first.at);
  let isOver: string | undefined;
  for (const [at, entry] of entries.entries()) {
    const go = (leaf: string): void => path.to(at, entry.at, `CONVERSATION.${leaf}`);
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

/** The path of TOOL_CALL for one call, its last start and what came of it. */
export function callPath(walker: Walker, entries: readonly LogEntry[], call: CallFacts): Path {
  const path = new PathBuilder(walker);
  const go = (at: number, ...leaves: string[]): void =>
    path.to(at, entries[at]?.at ?? 0, ...leaves.map((leaf) => `TOOL_CALL.${leaf}`));
  const marks = [
    ...call.starts.map(({ at }) => ({ at, leaves: ['ExecuteTool.attempting'] })),
    ...call.suspensions.map(({ at }) => ({ at, leaves: ['Suspended', 'Done'] })),
    ...(call.result && !isStopped(call) ? [{ at: call.result.at, leaves: [stateOf(call), 'Done'] }] : []),
  ].sort((a, b) => a.at - b.at);
  for (const { at, leaves } of marks) {
    // A replay is another actor: it begins anew.
    if (path.moves.length === 0 || path.leaf === 'TOOL_CALL.Done') path.begin(at, entries[at]?.at ?? 0);
    go(at, ...leaves);
  }
  return path.moves;
}

/** A cancelled round stops the actor where it stands; a denied call ends by itself. */
const isStopped = ({ result, suspensions }: CallFacts): boolean =>
  result?.outcome === 'cancelled' && suspensions.at(-1)?.decision === undefined;

function stateOf({ result, starts }: CallFacts): string {
  if (result?.outcome === 'succeeded') return 'Succeeded';
  return starts.length === 0 && result?.code !== undefined ? 'Blocked' : 'Failed';
}

/** The path of TOOL_ROUND for the calls of one reply. */
export function roundPath(walker: Walker, entries: readonly LogEntry[], { runs, calls }: LogFacts, run: number): Path {
  const facts = runs[run];
  const path = new PathBuilder(walker);
  if (!facts) return [];
  const ids = new Set(
    [...calls.values()].filter(({ said }) => said >= facts.from && said <= facts.to).map((c) => c.callId),
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
      path.to(at, entry.at, 'TOOL_ROUND.Collected');
    } else if (entry.type === 'run-stop' && path.leaf === 'TOOL_ROUND.Running')
      path.to(at, entry.at, 'TOOL_ROUND.Stopped');
  }
  return path.moves;
}

/** What a chart shows at a cursor. */
export interface Standing {
  readonly leaf: string | undefined;
  /** Legs of the last step, in order. */
  readonly lit: readonly Leg[];
  readonly entered: ReadonlyMap<string, number>;
  readonly taken: ReadonlySet<string>;
  /** Log time at which the present state was entered. */
  readonly since: number;
  /** Milliseconds spent in each innermost state so far. */
  readonly spent: ReadonlyMap<string, number>;
}

/** The chart as of an entry. A way that is over stays lit from the last state that waited. */
export function standingAt(walker: Walker, path: Path, index: number, now: number): Standing {
  const entered = new Map<string, number>();
  const taken = new Set<string>();
  const spent = new Map<string, number>();
  const enter = (leaf: string, from: string | undefined): void => {
    const above = from === undefined ? [] : lineageOf(walker, from);
    for (const id of lineageOf(walker, leaf)) if (!above.includes(id)) entered.set(id, (entered.get(id) ?? 0) + 1);
  };
  let lit: readonly Leg[] = [];
  let before: Move | undefined;
  for (const move of path) {
    if (move.at > index) break;
    if (before) spent.set(before.leaf, (spent.get(before.leaf) ?? 0) + Math.max(0, move.time - before.time));
    let leaf = before?.leaf;
    for (const leg of move.legs) {
      taken.add(leg.key);
      const state = walker.tree.states.get(leg.target);
      if (!state) continue;
      const next = move.legs.at(-1) === leg ? move.leaf : deepest(walker, leg.target);
      if (next === leaf) entered.set(next, (entered.get(next) ?? 0) + 1);
      else enter(next, leaf);
      leaf = next;
    }
    if (move.legs.length === 0) enter(move.leaf, before?.leaf);
    const isTail = before !== undefined && isOutside(walker, before.leaf, move.leaf);
    lit = isTail ? [...lit, ...move.legs] : move.legs;
    before = move;
  }
  const { leaf, time = now } = before ?? {};
  if (leaf !== undefined) spent.set(leaf, (spent.get(leaf) ?? 0) + Math.max(0, now - time));
  return { leaf, lit, entered, taken, since: time, spent };
}

const lineages = new WeakMap<Walker, Map<string, readonly string[]>>();
function lineageOf(walker: Walker, id: string): readonly string[] {
  const known = lineages.get(walker) ?? new Map<string, readonly string[]>();
  lineages.set(walker, known);
  const found = known.get(id);
  if (found) return found;
  const line: string[] = [];
  for (let at: string | undefined = id; at !== undefined; at = walker.tree.parents.get(at)) line.push(at);
  known.set(id, line);
  return line;
}

function deepest(walker: Walker, id: string): string {
  const state = walker.tree.states.get(id);
  const child = state?.states.find(({ key }) => key === state.initial);
  return child ? deepest(walker, child.id) : id;
}

/** Both stand behind what could be cancelled: the end of a run is one way. */
const isOutside = (walker: Walker, from: string, to: string): boolean =>
  lineageOf(walker, from).length === 2 && lineageOf(walker, to).length === 2 && walker.chart.name === 'RUN';
