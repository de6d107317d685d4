/**
 * Renders the view of a stored conversation as lines. Invariant: every line with text of the log has a mark, so such
 * text cannot look like a line of the program. Cut text is marked as cut.
 */
import type { Diagnostic, QueuedMessage, StoredPart, Usage } from '../../../machines/vocabulary.ts';
import { labelledText } from '../../content/filePart.ts';
import { shortened } from '../../printable.ts';
import type {
  BlockText,
  ConversationView,
  InferenceRound,
  RequestCycle,
  ResolutionStep,
  ToolCallView,
} from '../../projector/index.ts';
import { firstLine } from '../../words/formats.ts';
import { count, type Tally, tallyText } from '../costTally.ts';
import { outcomeText, resultText } from '../renderLog.ts';
import type { Screen, Style } from '../screen.ts';

const TEXT_MAX = 20_000;
const REASONING_MAX = 2_000;
const LINE_MAX = 200;
const ARGS_MAX = 120;
const NAME_MAX = 80;
const NOTES_MAX = 50;

/** The fields that decide how a call without a result is shown. */
type CycleOutcome = Pick<RequestCycle, 'waiting' | 'stop'>;

export class ReplayRenderer {
  readonly #screen: Screen;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Shows one request as a person sees it. */
  cycle(cycle: RequestCycle, number: number, spent: Tally | undefined): void {
    this.#head(cycle, number);
    for (const step of cycle.steps) this.#step(step, cycle);
    this.#end(cycle, spent);
  }

  /** Shows one request as the rounds of the model. */
  rounds(cycle: RequestCycle, number: number, spent: Tally | undefined): void {
    this.#head(cycle, number);
    for (const [index, round] of cycle.rounds.entries()) this.#round(round, index + 1, cycle);
    this.#end(cycle, spent);
  }

  /** Shows the parts after the cycles: the queue, the sum of several requests, the diagnostics. */
  rest({ queued, diagnostics, cycles }: ConversationView, spent: Tally): void {
    for (const message of queued) this.#queued(message);
    if (cycles.length === 0) this.#screen.line(['dim', 'no request yet']);
    if (cycles.length > 1 && spent.turns > 0) this.#screen.line(['dim', `together: ${tallyText(spent)}`]);
    for (const diagnostic of diagnostics.slice(0, NOTES_MAX)) this.#diagnostic(diagnostic);
    const more = diagnostics.length - NOTES_MAX;
    if (more > 0) this.#screen.line(['yellow', `! and ${more.toLocaleString('en-US')} more`]);
  }

  #head({ root }: RequestCycle, number: number): void {
    this.#screen.line(['bold', `── ${number} · ${root.kind}`]);
  }

  #step(step: ResolutionStep, cycle: CycleOutcome): void {
    if (step.type !== 'ai-block') {
      this.#text(step.type === 'steer' ? '> (steer) ' : '> ', contentText(step.content), TEXT_MAX);
      return;
    }
    if (step.text !== null) this.#block(step.text);
    for (const { kind, calls } of step.groups) {
      this.#screen.line(['dim', `  ${kind}`]);
      for (const call of calls) {
        this.#call('    ', call);
        this.#outcome('      ', call, cycle);
      }
    }
  }

  #round({ input, output, usage }: InferenceRound, number: number, cycle: CycleOutcome): void {
    this.#screen.line(['bold', `  round ${number}`], ['dim', usage === undefined ? '' : ` · ${tokensText(usage)}`]);
    for (const { kind, content } of input.messages) {
      this.#screen.line(['cyan', `  ← ${kind} `], ['plain', firstLine(contentText(content), LINE_MAX)]);
    }
    for (const call of input.results) {
      this.#screen.line(['cyan', '  ← '], ['plain', nameOf(call)], ['dim', ` ${shortened(call.callId, NAME_MAX)}`]);
      this.#outcome('    ', call, cycle);
    }
    for (const text of output.texts) this.#block(text);
    for (const call of output.calls) this.#call('  ', call);
  }

  #block({ kind, text, flag }: BlockText): void {
    if (kind === 'reasoning') this.#text('┊ ', text, REASONING_MAX, 'dim');
    else this.#text('│ ', text, TEXT_MAX);
    if (flag !== undefined) this.#screen.line(['yellow', `  (${flag})`]);
  }

  #call(indent: string, { name, args }: ToolCallView): void {
    const argumentText = shortened(JSON.stringify(args), ARGS_MAX);
    this.#screen.line(['cyan', `${indent}→ `], ['bold', shortened(name, NAME_MAX)], ['dim', ` ${argumentText}`]);
  }

  #outcome(indent: string, { callId, result }: ToolCallView, { waiting, stop }: CycleOutcome): void {
    if (result === null) {
      const [style, resultNote]: [Style, string] = waiting.includes(callId)
        ? ['yellow', '⏸ waits for a decision']
        : stop === null
          ? ['dim', '… no result yet']
          : ['yellow', '? no result'];
      this.#screen.line([style, `${indent}${resultNote}`]);
      return;
    }
    const { outcome, code, content } = result;
    const summary = ['dim', ` ${resultText(content)}`] as const;
    if (outcome === 'succeeded') return this.#screen.line(['green', `${indent}✓`], summary);
    const how = outcomeText(outcome, code && shortened(code, NAME_MAX));
    this.#screen.line(['red', `${indent}${outcome === 'unknown' ? '?' : '✗'} ${how}`], summary);
  }

  #end(cycle: RequestCycle, spent: Tally | undefined): void {
    const { stop, waiting } = cycle;
    const took = ['dim', spent === undefined ? '' : ` · ${tallyText(spent)}`] as const;
    if (stop !== null) {
      const style = stop.reason === 'completed' ? 'green' : stop.reason === 'interrupted' ? 'yellow' : 'red';
      const isPlain = stop.cause === undefined || stop.cause === 'end_turn';
      const why = isPlain ? '' : ` (${shortened(stop.cause ?? '', LINE_MAX)})`;
      this.#screen.line([style, `■ ${stop.reason}${why}`], took);
    } else if (waiting.length > 0) {
      this.#screen.line(['yellow', `⏸ waiting for ${shortened(waitingText(cycle), LINE_MAX)}`], took);
    } else {
      this.#screen.line(['yellow', '… no stop: the log ends here'], took);
    }
    this.#screen.line(['plain', '']);
  }

  #queued({ kind, content }: QueuedMessage): void {
    this.#screen.line(['cyan', `+ queued (${kind}) `], ['plain', firstLine(contentText(content), LINE_MAX)]);
  }

  #diagnostic({ code, seq, detail }: Diagnostic): void {
    const at = seq === undefined ? '' : ` at entry ${seq}`;
    const more = detail === undefined ? '' : ` ${shortened(JSON.stringify(detail), LINE_MAX)}`;
    this.#screen.line(['yellow', `! ${shortened(code, NAME_MAX)}${at}`], ['dim', more]);
  }

  /** Writes text with a mark before each line. */
  #text(mark: string, text: string, charactersMax: number, style: 'plain' | 'dim' = 'plain'): void {
    const shown = shortened(text, charactersMax).split('\n');
    const marked = `${shown.map((line) => `${mark}${line}`).join('\n')}\n`;
    if (style === 'dim') this.#screen.reasoning(marked);
    else this.#screen.reply(marked);
    const rest = text.length - charactersMax;
    if (rest > 0) this.#screen.line(['dim', `  … ${count(rest, 'more character')}`]);
  }
}

/** Images are shown as their media types, files with their names too. */
const contentText = (content: readonly StoredPart[]): string => labelledText(content, ' ');

const tokensText = ({ inputTokens, outputTokens }: Usage): string =>
  `${inputTokens.toLocaleString('en-US')} tokens in, ${outputTokens.toLocaleString('en-US')} out`;

const nameOf = ({ name }: ToolCallView): string => shortened(name, NAME_MAX);

function waitingText({ waiting, rounds }: RequestCycle): string {
  const names = new Map(rounds.flatMap(({ output }) => output.calls.map((call) => [call.callId, nameOf(call)])));
  return waiting.map((callId) => [names.get(callId), `(${shortened(callId, NAME_MAX)})`].join(' ').trim()).join(', ');
}
