/**
 * Generates test cases for the user's own agent from the charts, its tools, approvals, plugins and policies. Invariant:
 * each case is replayed on the charts first, then runs on the real runtime with the real tools. The same agent gives
 * the same cases.
 */
import { type Completion, type EffectRequest, type LogEntry, outputInLog } from '../../../machines/internal.ts';
import { inWords, type Move, sentenceOf, toolNames } from '../../scripts/moves.ts';
import { endInWords, endOfLastRun } from '../../scripts/scriptOf.ts';
import { ChangedAnswers, explained } from './failureCauses.ts';
import type { AgentPath, AgentPathsOptions, PathOutcome } from './pathOptions.ts';
import { checkPathsOptions } from './pathOptions.ts';
import { type AgentPathsReport, reportOf } from './pathReport.ts';
import { play } from './runScript.ts';
import { type MakeAgent, type ScriptRun, type Standing, standingInWords } from './scriptRun.ts';
import type { AgentModel, Behaviour } from './search/callBehaviour.ts';
import { courseOf } from './search/chartPlace.ts';
import { Exploration } from './search/exploration.ts';
import { type Cover, reachableIn, walksOver } from './search/graphCover.ts';
import { plainAnswer, type Step } from './search/nextMoves.ts';
import { type FoundPaths, foundBefore } from './search/pathCache.ts';
import { Prediction } from './search/prediction.ts';
import type { ProbeFault, VerdictRow } from './verdictRows.ts';
import { type Probed, Prober } from './verdicts.ts';
import type { CleanEffects } from './world/toolWatch.ts';

/** The generated cases of an agent. */
export interface AgentPaths {
  /** The cases. Run each one in a test of its own. */
  readonly cases: readonly AgentPath[];
  /** The verdict for each call, to review and keep as a snapshot. */
  readonly verdicts: readonly VerdictRow[];
  /** The transitions and sorts of moves that the executed cases covered. */
  report(): AgentPathsReport;
}

/** A script with the outcome that the charts predict. */
interface Predicted {
  readonly script: readonly Move[];
  /** The behaviours of its calls, in order. */
  readonly made: readonly Behaviour[];
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
  readonly #clean: CleanEffects;
  readonly #names = new Map<string, number>();
  readonly #returned = new Set<string>();

  constructor(make: MakeAgent, options: AgentPathsOptions, { model, clean }: Pick<Probed, 'model' | 'clean'>) {
    this.#make = make;
    this.#options = options;
    this.#model = model;
    this.#clean = clean;
  }

  /** Returns cases that together contain every item of the cover. */
  covering(words: readonly (readonly Step[])[], exploration: Exploration): AgentPath[] {
    return words.map((word) => {
      const script = word.map((step) => exploration.moveOf(step));
      return this.#case(this.#predict(script, behavioursOf(word, exploration.kinds)));
    });
  }

  /**
   * Returns the plain cases of a call: it ends, is cancelled, or the process dies, also after an approval. It also runs
   * with each edit that a person may make. A call that another case already covers is omitted.
   */
  plainly(behaviour: Behaviour): AgentPath[] {
    const call: Move = { do: 'reply', calls: [{ name: behaviour.tool, args: behaviour.args }] };
    const begin: Move[] = [{ do: 'send' }, call];
    const { standing } = this.#played(begin, [behaviour]);
    const running = standing.running.length > 0 ? begin : this.#toEnd(begin, behaviour, true);
    const stories = [begin];
    for (const story of standing.waiting.length > 0 ? [begin, running] : [running])
      stories.push(...this.#troubled(story, behaviour));
    for (const args of standing.waiting.length > 0 ? behaviour.edits : [])
      stories.push([...begin, { do: 'decide', call: 1, action: 'edit', args }]);
    return stories.flatMap((story) => {
      const script = this.#toEnd(story, behaviour);
      const scriptText = JSON.stringify(script);
      if (this.#returned.has(scriptText)) return [];
      return this.#case(this.#predict(script, [behaviour]));
    });
  }

  /** Returns stories that are cancelled, or that end with a crash, while a call runs or waits. */
  #troubled(story: readonly Move[], behaviour: Behaviour): Move[][] {
    const { running, waiting } = this.#played(story, [behaviour]).standing;
    if (running.length + waiting.length === 0) return [];
    const moves = this.#options.moves ?? ['cancel', 'crash'];
    const troubles: Move[] = [];
    if (moves.includes('cancel')) troubles.push({ do: 'cancel' });
    if (moves.includes('crash')) troubles.push({ do: 'crash' });
    // A repetition can only have a second effect after the first execution has had its own.
    if (moves.includes('crash') && behaviour.idempotent && running.includes(1)) troubles.push({ do: 'crash', lost: 1 });
    return troubles.map((trouble) => [...story, trouble]);
  }

  /** Returns a failing case for the fault that a probe found. */
  faulty({ name, message }: ProbeFault): AgentPath {
    const run = (): Promise<PathOutcome> => Promise.reject(new Error(message));
    return { name: this.#named(name), script: [], ends: 'Error', run };
  }

  #played(script: readonly Move[], made: readonly Behaviour[]): Prediction {
    return new Prediction(this.#model).tell(script, made);
  }

  /** Appends the plainest moves until the run ends. `untilRunning`: stops when a call runs. */
  #toEnd(begin: readonly Move[], behaviour: Behaviour, untilRunning = false): Move[] {
    const script = [...begin];
    for (let count = 0; count < 10; count++) {
      const prediction = this.#played(script, [behaviour]);
      const { standing, isResumable, logState } = prediction;
      const [runs] = standing.running;
      const [waits] = standing.waiting;
      if (standing.model) script.push({ do: 'reply', text: plainAnswer(this.#model.surroundings.answers) });
      else if (runs !== undefined && untilRunning) break;
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
    const end = endOfCourse(prediction.entries, script);
    prediction.stop();
    return { script, made, standings, course, ...end };
  }

  #named(name: string): string {
    const count = (this.#names.get(name) ?? 0) + 1;
    this.#names.set(name, count);
    return count === 1 ? name : `${name} (${count})`;
  }

  #case(predicted: Predicted): AgentPath {
    const { script, ends, end } = predicted;
    this.#returned.add(JSON.stringify(script));
    const path: AgentPath = {
      name: this.#named(sentenceOf(script, end)),
      script,
      ends,
      run: () => this.#run(path, predicted),
    };
    return path;
  }

  async #run(path: AgentPath, { standings, course, script, made }: Predicted): Promise<PathOutcome> {
    const { outside, stubs, abortMs, examples, check } = this.#options;
    const options = { outside, stubs, abortMs, examples, taken: (key: string) => void this.taken.add(key) };
    this.ran += 1;
    const afterMove = (run: ScriptRun, moves: number): void => stands(run, standings[moves], { script, moves });
    const definedOptions = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    const changed = new ChangedAnswers(this.#model.surroundings, made);
    const isMade = (callId: string): boolean =>
      script.some((move) => move.do === 'tool' && move.made !== undefined && `call${move.call}` === callId);
    const answered = (request: EffectRequest, completion: Completion): void =>
      changed.compare(request, completion, 'callId' in request && isMade(request.callId));
    const { result, pending, log } = await play(this.#make, script, {
      ...definedOptions,
      afterMove,
      answered,
      clean: this.#clean,
    })
      .then((played) => {
        sameCourse(courseOf(played.log), course);
        return played;
      })
      .catch((error: unknown) => Promise.reject(explained(error, changed.texts)));
    const outcome: PathOutcome = { path, result, pending, log };
    await check?.(outcome);
    this.passed += 1;
    return outcome;
  }
}

const behavioursOf = (word: readonly Step[], kinds: readonly Behaviour[]): Behaviour[] =>
  word.flatMap((step) => step.kinds.flatMap((kind) => kinds[kind] ?? []));

function endOfCourse(entries: readonly LogEntry[], script: readonly Move[]): Pick<Predicted, 'end' | 'ends'> {
  if (script.at(-1)?.do === 'crash') return { end: 'crashed', ends: 'crashed' };
  const last = endOfLastRun(entries);
  // The close of the agent interrupts a run that is still active.
  if (!last) return { end: 'interrupted (cancelled)', ends: 'Cancelled' };
  return { end: endInWords(last), ends: outputInLog('', [last]).termination };
}

function stands(
  run: ScriptRun,
  expected: Standing | undefined,
  { script, moves }: { script: readonly Move[]; moves: number },
): void {
  const is = run.standing;
  if (!expected || JSON.stringify(is) === JSON.stringify(expected)) return;
  const move = script[moves - 1];
  const where = move ? `after move ${moves} (${inWords(move, toolNames(script))})` : 'at the beginning';
  const error = is.status === 'error' ? run.result?.error : undefined;
  const why = error ? `${error.message}\n  ` : '';
  throw new Error(`${why}${where}: ${standingInWords(is)}; the charts say: ${standingInWords(expected)}`);
}

function sameCourse(actual: readonly string[], predicted: readonly string[]): void {
  const at = actual.findIndex((line, index) => line !== predicted[index]);
  const place = at < 0 && predicted.length > actual.length ? actual.length : at;
  if (place < 0) return;
  throw new Error(
    `entry ${place} of the log is "${actual[place] ?? 'none'}"; the charts say "${predicted[place] ?? 'none'}"`,
  );
}

/** Returns new paths, or cached paths that are still valid: each word leads where the graph predicts. */
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
  checkPathsOptions('agentPaths', agent, options);
  const { model, rows, faults, clean, policies } = await new Prober(agent, options).run();
  const exploration = new Exploration(model, options);
  const cover = options.cover ?? 'transitions';
  const { words, reachable, closer } = pathsOf(exploration, cover);
  const generation = new Generation(agent, options, { model, clean });
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
        ...{ model, closer, policies },
        rows,
        ran: generation.ran,
        passed: generation.passed,
        cases: cases.length,
      }),
  };
}
