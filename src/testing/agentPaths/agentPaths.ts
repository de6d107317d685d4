/**
 * Cases for the user's own agent, generated from the charts: what this agent, with its tools, approvals, plugins and
 * policies, can come to. Rule: each case was replayed on the charts before it is given out, and is run on the real
 * runtime with the real tools; the same agent gives the same cases.
 */
import type { Completion, EffectRequest, LogEntry } from '../../../machines/internal.ts';
import { ConfigurationError, thrownText } from '../../errors.ts';
import { type Move, sentenceOf } from './moves.ts';
import { type AgentPathsReport, reportOf } from './report.ts';
import { type AgentPath, type AgentPathsOptions, checkPathsOptions, type PathOutcome, play } from './runScript.ts';
import { type MakeAgent, type ScriptRun, type Standing, standingInWords } from './scriptRun.ts';
import type { AgentModel, Behaviour } from './search/behaviour.ts';
import { type Cover, reachableIn, walksOver } from './search/cover.ts';
import { Exploration } from './search/exploration.ts';
import type { Step } from './search/nextMoves.ts';
import { phaseAnswer } from './search/ownAnswers.ts';
import { type FoundPaths, foundBefore } from './search/pathCache.ts';
import { courseOf } from './search/place.ts';
import { Prediction } from './search/prediction.ts';
import { type ProbeFault, Prober, type VerdictRow } from './verdicts.ts';

export interface AgentPaths {
  readonly cases: readonly AgentPath[];
  /** What becomes of each call, to be reviewed and kept as a snapshot. */
  readonly verdicts: readonly VerdictRow[];
  /** What the cases that ran so far took. */
  report(): AgentPathsReport;
}

/** A script with what the charts say of it. */
interface Predicted {
  readonly script: readonly Move[];
  readonly standings: readonly Standing[];
  readonly course: readonly string[];
  readonly end: string;
  readonly ends: AgentPath['ends'];
}

class Generation {
  readonly taken = new Set<string>();
  ran = 0;
  passed = 0;
  readonly #make: MakeAgent;
  readonly #options: AgentPathsOptions;
  readonly #model: AgentModel;
  readonly #names = new Map<string, number>();
  readonly #told = new Set<string>();

  constructor(make: MakeAgent, options: AgentPathsOptions, model: AgentModel) {
    this.#make = make;
    this.#options = options;
    this.#model = model;
  }

  /** Cases that together hold the cover. */
  covering(words: readonly (readonly Step[])[], exploration: Exploration): AgentPath[] {
    return words.map((word) => {
      const script = word.map((step) => exploration.moveOf(step));
      return this.#case(this.#predict(script, behavioursOf(word, exploration.kinds)));
    });
  }

  /** It ends, is cancelled, and the process dies in it: of each call, unless a case tells it already. */
  plainly(behaviour: Behaviour): AgentPath[] {
    const call: Move = { do: 'reply', calls: [{ name: behaviour.tool, args: behaviour.args }] };
    const begin: Move[] = [{ do: 'send' }, call];
    const stories = [begin];
    const moves = new Set(this.#options.moves ?? ['cancel', 'crash']);
    const { standing } = this.#played(begin, [behaviour]);
    if (standing.running.length + standing.waiting.length > 0) {
      if (moves.has('cancel')) stories.push([...begin, { do: 'cancel' }]);
      if (moves.has('crash')) stories.push([...begin, { do: 'crash' }]);
    }
    return stories.flatMap((story) => {
      const script = this.#toEnd(story, behaviour);
      const told = JSON.stringify(script);
      if (this.#told.has(told)) return [];
      return this.#case(this.#predict(script, [behaviour]));
    });
  }

  /** What a probe has found is the failure of a case of its own. */
  faulty({ name, message }: ProbeFault): AgentPath {
    const run = (): Promise<PathOutcome> => Promise.reject(new Error(message));
    return { name: this.#named(name), script: [], ends: 'Error', run };
  }

  #played(script: readonly Move[], made: readonly Behaviour[]): Prediction {
    return new Prediction(this.#model).tell(script, made);
  }

  /** Goes on in the plainest way. */
  #toEnd(begin: readonly Move[], behaviour: Behaviour): Move[] {
    const script = [...begin];
    for (let count = 0; count < 10; count++) {
      const prediction = this.#played(script, [behaviour]);
      const { standing, isResumable, logState } = prediction;
      const [runs] = standing.running;
      const [waits] = standing.waiting;
      if (standing.model) script.push({ do: 'reply', text: 'done' });
      else if (runs !== undefined) script.push({ do: 'tool', call: runs });
      else if (waits !== undefined && logState.held === 0) {
        const record = logState.calls.get(`call${waits}`);
        const isAsked = record?.reason === 'permission' || record?.reason === 'sub-agent';
        script.push({ do: 'decide', call: waits, action: isAsked ? 'approve' : 'answer' });
      } else if (isResumable) script.push({ do: 'resume' });
      else break;
    }
    return script;
  }

  #predict(script: readonly Move[], made: readonly Behaviour[]): Predicted {
    const prediction = new Prediction(this.#model);
    const standings = [prediction.standing];
    prediction.tell(script, made, () => void standings.push(prediction.standing));
    const course = courseOf(prediction.entries);
    const last = prediction.entries.filter(({ type }) => type === 'run-stop' || type === 'run-suspended').at(-1);
    prediction.stop();
    return { script, standings, course, ...endOfCourse(last, script) };
  }

  #named(name: string): string {
    const count = (this.#names.get(name) ?? 0) + 1;
    this.#names.set(name, count);
    return count === 1 ? name : `${name} (${count})`;
  }

  #case(predicted: Predicted): AgentPath {
    const { script, ends, end } = predicted;
    this.#told.add(JSON.stringify(script));
    const path: AgentPath = {
      name: this.#named(sentenceOf(script, end)),
      script,
      ends,
      run: () => this.#run(path, predicted),
    };
    return path;
  }

  /** A phase that says something else than when the agent was looked at explains what differs behind it. */
  #compare(request: EffectRequest, completion: Completion, changed: Set<string>): void {
    if (request.kind !== 'phase' || completion.type !== 'effect.done' || request.termination !== undefined) return;
    const said = phaseAnswer(this.#model.surroundings, request).kind;
    const { kind } = completion.value;
    if (kind === said) return;
    const name = request.phases.join(' and ');
    changed.add(
      `${name} of turn ${request.turn} answered ${kind}, and ${said} when the agent was looked at: it depends on more than the turn`,
    );
  }

  async #run(path: AgentPath, { standings, course, script }: Predicted): Promise<PathOutcome> {
    const { outside, stubs, abortMs, examples, check } = this.#options;
    const options = { outside, stubs, abortMs, examples, taken: (key: string) => void this.taken.add(key) };
    this.ran += 1;
    const behind = (run: ScriptRun, moves: number): void => stands(run, standings[moves], moves);
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const changed = new Set<string>();
    const answered = (request: EffectRequest, completion: Completion): void =>
      this.#compare(request, completion, changed);
    const { result, pending, log } = await play(this.#make, script, { ...given, behind, answered })
      .then((played) => {
        sameCourse(courseOf(played.log), course);
        return played;
      })
      .catch((error: unknown) => Promise.reject(changed.size === 0 ? error : explained(error, changed)));
    const outcome: PathOutcome = { path, result, pending, log };
    await check?.(outcome);
    this.passed += 1;
    return outcome;
  }
}

const explained = (error: unknown, changed: ReadonlySet<string>): Error =>
  new Error([error instanceof Error ? error.message : thrownText(error), ...changed].join('\n  '), { cause: error });

const behavioursOf = (word: readonly Step[], kinds: readonly Behaviour[]): Behaviour[] =>
  word.flatMap((step) => step.kinds.flatMap((kind) => kinds[kind] ?? []));

function endOfCourse(last: LogEntry | undefined, script: readonly Move[]): Pick<Predicted, 'end' | 'ends'> {
  if (script.at(-1)?.do === 'crash') return { end: 'crashed', ends: 'crashed' };
  if (last?.type !== 'run-stop') return { end: 'waiting', ends: 'Suspended' };
  const { reason, cause } = last;
  const ends = reason === 'completed' ? 'NaturalEnd' : reason === 'error' ? 'Error' : 'Cancelled';
  const says = cause !== undefined && cause !== 'end_turn';
  return { end: says ? `${reason} (${cause})` : reason, ends };
}

function stands(run: ScriptRun, said: Standing | undefined, moves: number): void {
  const is = run.standing;
  if (!said || JSON.stringify(is) === JSON.stringify(said)) return;
  const where = moves === 0 ? 'at the beginning' : `behind move ${moves}`;
  const error = is.status === 'error' ? run.result?.error : undefined;
  const why = error ? ` (${error.message})` : '';
  throw new Error(`${where}: ${standingInWords(is)}${why}; the charts say: ${standingInWords(said)}`);
}

function sameCourse(is: readonly string[], said: readonly string[]): void {
  const at = is.findIndex((line, index) => line !== said[index]);
  const place = at < 0 && said.length > is.length ? is.length : at;
  if (place < 0) return;
  throw new Error(`entry ${place} of the log is "${is[place] ?? 'none'}"; the charts say "${said[place] ?? 'none'}"`);
}

/** Found now, or before and still true: each word leads where the graph says. */
function pathsOf(exploration: Exploration, cover: Cover): FoundPaths {
  return foundBefore(exploration.describedFor(cover), () => {
    const graph = exploration.graph();
    const words = walksOver(graph, cover);
    for (const word of words) {
      let at = graph.start;
      for (const step of word) at = graph.vertices.get(at)?.edges.find((edge) => edge.step === step)?.to ?? '';
      if (exploration.keyOf(word, graph) === at) continue;
      throw new Error(`equal keys have different futures: ${word.map(({ move }) => move.do).join(', ')}`);
    }
    return { words, reachable: [...reachableIn(graph)], ...(graph.closer && { closer: graph.closer }) };
  });
}

/**
 * Generates the cases of the agent that the factory makes: `createAgent({ tools, …, ...world })`. Its tools are executed,
 * now and in the cases, with arguments from their schemas: point them at a double, or name them in `stubs`.
 */
export async function agentPaths(agent: MakeAgent, options: AgentPathsOptions = {}): Promise<AgentPaths> {
  if (typeof agent !== 'function') throw new ConfigurationError('agentPaths needs a function that makes the agent');
  checkPathsOptions('agentPaths', options);
  const { model, rows, faults } = await new Prober(agent, options).run();
  const exploration = new Exploration(model, options);
  const cover = options.cover ?? 'transitions';
  const { words, reachable, closer } = pathsOf(exploration, cover);
  const generation = new Generation(agent, options, model);
  const cases = generation.covering(words, exploration);
  for (const behaviour of model.behaviours) cases.push(...generation.plainly(behaviour));
  for (const fault of faults) cases.push(generation.faulty(fault));
  return {
    cases,
    verdicts: rows,
    report: () =>
      reportOf({
        taken: generation.taken,
        reachable: new Set(reachable),
        ...{ model, closer },
        rows,
        ran: generation.ran,
        passed: generation.passed,
        cases: cases.length,
      }),
  };
}
