/**
 * The three charts that users meet, without their inner states and actions. Rule: a state or an arrow is drawn through
 * `ChartPicture`, which keeps its name, so that a test compares the picture with the chart.
 */
import { type Point, type Rect, SvgPicture, type Tone } from './svgPicture.ts';

export interface DrawnChart {
  chart: 'RUN' | 'TOOL_CALL' | 'RESUME_TOOL_CALL';
  picture: SvgPicture;
  arrows: readonly (readonly [from: string, to: string])[];
  states: readonly string[];
}

const HEIGHT = 30;
const ends: Record<string, Tone> = {
  Suspended: 'person',
  Blocked: 'refusal',
  Failed: 'refusal',
  Error: 'refusal',
  Succeeded: 'tool',
  LlmCall: 'model',
  ToolRound: 'tool',
  ExecuteTool: 'tool',
  ExecuteReplayedTool: 'tool',
};

class ChartPicture implements DrawnChart {
  readonly chart: DrawnChart['chart'];
  readonly picture: SvgPicture;
  readonly arrows: [string, string][] = [];
  readonly #places = new Map<string, Rect>();

  constructor(chart: DrawnChart['chart'], title: string) {
    this.chart = chart;
    this.picture = new SvgPicture(title);
  }

  get states(): readonly string[] {
    return [...this.#places.keys()];
  }

  /** The centre of its upper edge. */
  state(name: string, x: number, y: number, width: number): void {
    const tone = ends[name] ?? (/^Commit|^Persist/.test(name) ? 'log' : 'plain');
    this.#places.set(name, this.picture.box(x - width / 2, y, width, HEIGHT, [name], { tone }));
  }

  /** A state around others. */
  superstate(name: string, rect: Rect): void {
    this.#places.set(name, rect);
    this.picture.frame(rect.x, rect.y, rect.width, rect.height, name, { isDashed: true });
  }

  /** A point on the edge of a state: 0 is the left or upper end of that side. */
  at(name: string, side: 'top' | 'bottom' | 'left' | 'right', share = 0.5): Point {
    if (name === '[*]') throw new Error('an end has no edges');
    const rect = this.#places.get(name);
    if (!rect) throw new Error(`${name} has no place yet`);
    const { x, y, width, height } = rect;
    if (side === 'top' || side === 'bottom') return [x + width * share, side === 'top' ? y : y + height];
    return [side === 'left' ? x : x + width, y + height * share];
  }

  link(from: string, to: string, points: readonly Point[]): void {
    this.arrows.push([from, to]);
    this.picture.arrow(points);
  }

  /** Straight down. */
  down(from: string, to: string): void {
    const [x, y] = this.at(from, 'bottom');
    this.link(from, to, [
      [x, y],
      [x, this.at(to, 'top')[1]],
    ]);
  }

  note(x: number, y: number, text: string, anchor: 'start' | 'middle' | 'end' = 'start'): void {
    this.picture.text(x, y, text, { font: 'note', anchor });
  }
}

function drawRun(): DrawnChart {
  const run = new ChartPicture('RUN', 'The chart RUN, simplified: one request from RunStart to CommitFinished');
  const column = [
    ...[
      'RunStart',
      'CommitUser',
      'ResumeReplay0',
      'CommitReplay0',
      'LoopTop',
      'ResumeToolCall',
      'StepPrepare',
      'LlmCall',
    ],
    ...['AfterInference', 'CommitAssistant', 'ToolRound', 'CommitTool', 'ResumeAfterTool'],
  ];
  const [x, top, step, width] = [134, 62, 46, 148];
  run.superstate('active', { x: 12, y: 12, width: 208, height: top + 12 * step + HEIGHT + 14 - 12 });
  run.picture.dot(x, top - 28);
  for (const [index, name] of column.entries()) run.state(name, x, top + index * step, width);
  run.link('[*]', 'RunStart', [
    [x, top - 23],
    [x, top],
  ]);
  for (const [index, name] of column.slice(1).entries()) run.down(column[index] ?? '', name);

  const endX = 340;
  const rowOf = (name: string): number => run.at(name, 'top')[1];
  const endRows = { Terminate: 'StepPrepare', NaturalEnd: 'CommitAssistant', Suspended: 'ResumeAfterTool' };
  for (const [name, row] of Object.entries(endRows)) {
    run.state(name, endX, rowOf(row), 104);
    run.link(row, name, [run.at(row, 'right'), run.at(name, 'left')]);
  }
  const [commitX, commitY] = run.at('CommitAssistant', 'right', 0.2);
  run.link('CommitAssistant', 'Terminate', [
    [commitX, commitY],
    [268, commitY],
    [268, rowOf('Terminate') + 25],
    [288, rowOf('Terminate') + 25],
  ]);
  run.note(226, rowOf('StepPrepare') + 10, 'a limit');
  run.note(226, rowOf('CommitAssistant') + 30, 'no calls');
  run.note(226, rowOf('ResumeAfterTool') + 10, 'all wait');

  // Back to the next turn, and past the replay of decisions.
  const back = (from: string, side: number): void => {
    const [left, y] = run.at(from, 'left');
    run.link(from, 'LoopTop', [[left, y], [side, y], [side, rowOf('LoopTop') + 15], run.at('LoopTop', 'left')]);
  };
  back('ResumeAfterTool', 30);
  run.note(36, rowOf('LoopTop') - 4, 'next', 'start');
  const [, replayY] = run.at('ResumeReplay0', 'right');
  run.link('ResumeReplay0', 'LoopTop', [
    run.at('ResumeReplay0', 'right'),
    [214, replayY],
    [214, rowOf('LoopTop') + 15],
    run.at('LoopTop', 'right'),
  ]);

  const bottom = run.at('active', 'bottom')[1];
  run.state('Cancelled', 72, bottom + 44, 96);
  run.state('Error', 180, bottom + 44, 72);
  for (const [name, from, label] of [
    ['Cancelled', 72, 'cancel'],
    ['Error', 180, 'failure'],
  ] as const) {
    run.link('active', name, [
      [from, bottom],
      [from, bottom + 44],
    ]);
    run.note(from + 8, bottom + 26, label);
  }
  run.state('RunEnd', endX, bottom + 44, 104);
  run.state('CommitFinished', endX, bottom + 96, 130);
  const [, endY] = run.at('RunEnd', 'left');
  run.link('Error', 'RunEnd', [run.at('Error', 'right'), [endX - 52, endY]]);
  run.link('Cancelled', 'RunEnd', [
    run.at('Cancelled', 'bottom'),
    [72, bottom + 84],
    [endX - 28, bottom + 84],
    [endX - 28, bottom + 74],
  ]);
  const rail = 406;
  for (const name of ['Terminate', 'NaturalEnd', 'Suspended'])
    run.link(name, 'RunEnd', [
      run.at(name, 'right'),
      [rail, run.at(name, 'right')[1]],
      [rail, endY],
      run.at('RunEnd', 'right'),
    ]);
  run.down('RunEnd', 'CommitFinished');
  run.link('CommitFinished', '[*]', [run.at('CommitFinished', 'bottom'), [endX, bottom + 143]]);
  run.picture.dot(endX, bottom + 152, true);
  return run;
}

function drawToolCall(): DrawnChart {
  const call = new ChartPicture('TOOL_CALL', 'The chart TOOL_CALL, simplified: one call from its check to its result');
  call.picture.dot(130, 20);
  call.state('BeforeToolExecute', 130, 44, 162);
  call.link('[*]', 'BeforeToolExecute', [
    [130, 25],
    [130, 44],
  ]);
  call.state('ExecuteTool', 300, 120, 116);
  for (const [index, name] of ['Blocked', 'Failed', 'Suspended', 'Succeeded'].entries())
    call.state(name, 58 + index * 101, 222, 94);
  const before = (share: number): Point => call.at('BeforeToolExecute', 'bottom', share);
  call.link('BeforeToolExecute', 'ExecuteTool', [
    call.at('BeforeToolExecute', 'right'),
    [300, 59],
    call.at('ExecuteTool', 'top'),
  ]);
  call.link('BeforeToolExecute', 'Blocked', [before(0.06), call.at('Blocked', 'top')]);
  call.link('BeforeToolExecute', 'Failed', [before(0.55), call.at('Failed', 'top', 0.3)]);
  call.link('BeforeToolExecute', 'Suspended', [before(0.9), call.at('Suspended', 'top', 0.3)]);
  call.link('ExecuteTool', 'Failed', [call.at('ExecuteTool', 'bottom', 0.15), call.at('Failed', 'top', 0.75)]);
  call.link('ExecuteTool', 'Suspended', [call.at('ExecuteTool', 'bottom', 0.45), call.at('Suspended', 'top', 0.7)]);
  call.link('ExecuteTool', 'Succeeded', [call.at('ExecuteTool', 'bottom', 0.8), call.at('Succeeded', 'top')]);
  call.note(306, 98, 'allowed');
  call.state('AfterToolExecute', 210, 300, 160);
  for (const [index, name] of ['Blocked', 'Failed', 'Suspended', 'Succeeded'].entries())
    call.link(name, 'AfterToolExecute', [
      call.at(name, 'bottom'),
      call.at('AfterToolExecute', 'top', 0.14 + index * 0.24),
    ]);
  call.link('AfterToolExecute', '[*]', [
    [210, 330],
    [210, 350],
  ]);
  call.picture.dot(210, 359, true);
  return call;
}

function drawResumeToolCall(): DrawnChart {
  const title = 'The chart RESUME_TOOL_CALL, simplified: how decisions are applied';
  const gate = new ChartPicture('RESUME_TOOL_CALL', title);
  const [x, step] = [190, 48];
  const y = (row: number): number => 44 + row * step;
  gate.picture.dot(x, 20);
  const column = ['DrainDecisionChannel', 'ResolveDecision', 'PersistResumeDecision', 'Replay'];
  for (const [row, name] of column.entries()) gate.state(name, x, y(row), 186);
  gate.link('[*]', 'DrainDecisionChannel', [
    [x, 25],
    [x, 44],
  ]);
  for (const [index, name] of column.slice(1).entries()) gate.down(column[index] ?? '', name);
  gate.state('NoDecision', 354, y(1), 104);
  gate.link('DrainDecisionChannel', 'NoDecision', [
    gate.at('DrainDecisionChannel', 'right'),
    [354, y(0) + 15],
    [354, y(1)],
  ]);
  gate.link('NoDecision', '[*]', [
    [354, y(1) + 30],
    [354, y(2) - 1],
  ]);
  gate.picture.dot(354, y(2) + 8, true);
  gate.state('ReplayCancel', 100, y(4) + 12, 116);
  gate.state('ReplayResume', 300, y(4) + 12, 120);
  gate.link('Replay', 'ReplayCancel', [gate.at('Replay', 'bottom', 0.2), gate.at('ReplayCancel', 'top')]);
  gate.link('Replay', 'ReplayResume', [gate.at('Replay', 'bottom', 0.8), gate.at('ReplayResume', 'top')]);
  gate.note(64, y(4) - 2, 'denied', 'start');
  gate.note(304, y(4) - 2, 'all others');
  gate.state('ExecuteReplayedTool', 300, y(5) + 12, 168);
  gate.down('ReplayResume', 'ExecuteReplayedTool');
  gate.state('SetNextSuspended', 318, y(6) + 18, 156);
  gate.link('ExecuteReplayedTool', 'SetNextSuspended', [
    [318, y(5) + 42],
    [318, y(6) + 18],
  ]);
  gate.note(326, y(6) + 7, 'waits again');
  gate.state('ClearResolved', 160, y(7) + 24, 130);
  gate.link('ReplayCancel', 'ClearResolved', [gate.at('ReplayCancel', 'bottom'), [100, y(7) + 12], [110, y(7) + 24]]);
  gate.link('ExecuteReplayedTool', 'ClearResolved', [
    [224, y(5) + 42],
    [224, y(6) + 30],
    [190, y(7) + 24],
  ]);
  gate.link('SetNextSuspended', 'ClearResolved', [
    [318, y(6) + 48],
    [318, y(7) + 39],
    [225, y(7) + 39],
  ]);
  gate.state('SnapshotIfStateChanged', 190, y(8) + 28, 200);
  gate.state('CommitReplay', 190, y(9) + 28, 130);
  gate.link('ClearResolved', 'SnapshotIfStateChanged', [
    [170, y(7) + 54],
    [170, y(8) + 28],
  ]);
  gate.down('SnapshotIfStateChanged', 'CommitReplay');
  gate.link('CommitReplay', '[*]', [
    [190, y(9) + 58],
    [190, y(9) + 78],
  ]);
  gate.picture.dot(190, y(9) + 87, true);
  gate.link('ClearResolved', 'ResolveDecision', [
    gate.at('ClearResolved', 'left'),
    [24, y(7) + 39],
    [24, y(1) + 15],
    gate.at('ResolveDecision', 'left'),
  ]);
  gate.note(32, y(1) + 8, 'next one');
  return gate;
}

export const chartPictures: Record<string, DrawnChart> = {
  'chart-run': drawRun(),
  'chart-tool-call': drawToolCall(),
  'chart-resume-tool-call': drawResumeToolCall(),
};
