/** The pictures of the concept pages. Rule: a text in the font `code` that names an entry names a kind of entry. */
import { SvgPicture, type Tone } from './svgPicture.ts';

function drawLog(): SvgPicture {
  const picture = new SvgPicture('A log, and what is computed from it');
  picture.frame(12, 12, 172, 402, 'the log', { tone: 'log' });
  const entries: [entry: string, tone: Tone][] = [
    ['conversation', 'plain'],
    ['run-started', 'plain'],
    ['user-message', 'person'],
    ['checkpoint', 'log'],
    ['agent-output', 'model'],
    ['model-reply', 'model'],
    ['checkpoint', 'log'],
    ['tool-started', 'tool'],
    ['tool-result', 'tool'],
    ['checkpoint', 'log'],
  ];
  for (const [index, [entry, tone]] of entries.entries())
    picture.box(42, 42 + index * 33, 130, 27, [entry], { tone, font: 'code' });
  for (const index of entries.keys()) picture.text(34, 60 + index * 33, `${index}`, { font: 'note', anchor: 'end' });
  picture.text(98, 396, 'It only grows.', { font: 'note', anchor: 'middle' });
  const derived = [
    ['messages', 'for the model'],
    ['view', 'for the page'],
    ['pending', 'calls that wait'],
    ['cost', 'tokens and USD'],
    ['state', 'after a restart'],
  ];
  picture.text(334, 34, 'computed from it', { font: 'title', anchor: 'middle' });
  for (const [index, [name = '', use = '']] of derived.entries()) {
    const y = 50 + index * 74;
    picture.box(260, y, 148, 54, [name, use]);
    picture.arrow([
      [186, y + 27],
      [258, y + 27],
    ]);
  }
  return picture;
}

function drawCycle(): SvgPicture {
  const picture = new SvgPicture('Three messages in one log make two request cycles');
  const rows: [entry: string, note: string, tone: Tone][] = [
    ['user-message', 'm1, direct', 'person'],
    ['agent-output', 'a call', 'model'],
    ['tool-result', '', 'tool'],
    ['user-message', 'm2, steer', 'person'],
    ['message-queued', 'm3, followUp', 'plain'],
    ['agent-output', 'the answer', 'model'],
    ['run-stop', 'completed', 'log'],
    ['user-message', 'm3 starts', 'person'],
    ['agent-output', 'the answer', 'model'],
    ['run-stop', 'completed', 'log'],
  ];
  const y = (row: number): number => 40 + row * 36 + (row > 6 ? 22 : 0);
  picture.text(83, 26, 'the log', { font: 'title', anchor: 'middle' });
  for (const [row, [entry, note, tone]] of rows.entries()) {
    picture.box(12, y(row), 142, 28, [entry], { tone, font: 'code' });
    picture.text(162, y(row) + 19, note, { font: 'note' });
  }
  picture.frame(266, y(0) - 6, 142, y(6) + 40 - y(0), 'request cycle 1', { tone: 'log' });
  picture.frame(266, y(7) - 6, 142, y(9) + 40 - y(7), 'request cycle 2', { tone: 'log' });
  const notes: [row: number, lines: string[]][] = [
    [0.75, ['m1 opens it.']],
    [2.6, ['m2 is delivered', 'before the next', 'model call.']],
    [4.6, ['m3 waits in the', 'queue.']],
    [6, ['The stop ends it.']],
    [8, ['m3 opens it.']],
  ];
  for (const [row, lines] of notes)
    for (const [index, line] of lines.entries())
      picture.text(274, y(0) + 19 + row * 36 + index * 17 + (row > 6 ? 24 : 0), line, { font: 'note' });
  picture.arrow([
    [83, y(6) + 30],
    [83, y(7) - 2],
  ]);
  return picture;
}

function drawDecision(): SvgPicture {
  const picture = new SvgPicture('A call that waits, the four decisions, and what each one does');
  picture.box(120, 12, 180, 46, ['a call waits', 'in conversation.pending'], { tone: 'person' });
  picture.box(120, 92, 180, 46, ['decide()', 'the first one counts'], { tone: 'log' });
  picture.arrow([
    [210, 58],
    [210, 90],
  ]);
  const actions: [action: string, lines: string[], tone: Tone][] = [
    ['approve', ['The tool runs', 'with these', 'arguments.'], 'tool'],
    ['edit', ['The tool runs', 'with your', 'arguments.'], 'tool'],
    ['answer', ['The tool runs', 'and receives', 'your payload.'], 'tool'],
    ['deny', ['It fails', 'with your', 'reason.'], 'refusal'],
  ];
  for (const [index, [action, lines, tone]] of actions.entries()) {
    const x = 6 + index * 103;
    picture.arrow([
      [210, 138],
      [210, 156],
      [x + 49, 156],
      [x + 49, 178],
    ]);
    picture.box(x, 180, 98, 30, [action], { tone, font: 'code' });
    for (const [row, line] of lines.entries())
      picture.text(x + 49, 230 + row * 17, line, { font: 'note', anchor: 'middle' });
  }
  picture.box(90, 290, 240, 46, ['one tool-result', 'the model continues'], { tone: 'model' });
  for (const index of actions.keys()) {
    const x = 55 + index * 103;
    picture.arrow(
      [
        [x, 272],
        [x, 280],
        [210, 280],
        [210, 288],
      ],
      { hasHead: index === 1 },
    );
  }
  return picture;
}

function drawPromise(): SvgPicture {
  const picture = new SvgPicture('What a crash leaves before, during and after a tool call');
  const steps: [label: string, note: string, tone: Tone, font: 'code' | 'label'][] = [
    ['agent-output', 'The model calls it.', 'model', 'code'],
    ['tool-started', 'This entry is durable.', 'log', 'code'],
    ['the tool runs', 'It acts on the world.', 'tool', 'label'],
    ['tool-result', 'This entry is durable.', 'log', 'code'],
    ['the model continues', 'It gets the result.', 'model', 'label'],
  ];
  const y = (index: number): number => 38 + index * 84;
  picture.text(97, 24, 'one tool call', { font: 'title', anchor: 'middle' });
  picture.text(312, 24, 'after a crash here', { font: 'title', anchor: 'middle' });
  for (const [index, [label, note, tone, font]] of steps.entries()) {
    picture.box(12, y(index), 170, 48, [label, note], { tone, font });
    if (index > 0)
      picture.arrow([
        [97, y(index - 1) + 48],
        [97, y(index) - 1],
      ]);
  }
  const crashes: [index: number, title: string, lines: string[], tone: Tone][] = [
    [0, 'The tool did not run.', ['The call is cancelled.'], 'plain'],
    [
      1.5,
      'The outcome is unknown.',
      ['You settle the call. An', 'idempotent tool runs', 'again, with its key.'],
      'person',
    ],
    [3, 'The result is kept.', ['It never runs again.'], 'tool'],
  ];
  for (const [index, title, lines, tone] of crashes) {
    const middle = y(index) + 66;
    const height = 34 + lines.length * 17;
    picture.box(216, middle - height / 2, 196, height, [title, ...lines], { tone });
    picture.arrow(
      [
        [index === 1.5 ? 183 : 98, middle],
        [214, middle],
      ],
      { isDashed: true },
    );
  }
  return picture;
}

export const conceptPictures: Record<string, SvgPicture> = {
  log: drawLog(),
  cycle: drawCycle(),
  decision: drawDecision(),
  promise: drawPromise(),
};
