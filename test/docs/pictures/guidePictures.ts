/** The pictures of guides. Rule: a text in the font `code` that names an entry names a kind of entry. */
import { SvgPicture, type Tone } from './svgPicture.ts';

function drawMessage(): SvgPicture {
  const picture = new SvgPicture('The way of a message: every step is an entry of the log before the next one starts');
  const lanes: [name: string, tone: Tone][] = [
    ['you', 'person'],
    ['log', 'log'],
    ['model', 'model'],
    ['tool', 'tool'],
  ];
  const x = (lane: number): number => 50 + lane * 108;
  const rows: [from: number, to: number, label: string, font: 'code' | 'note'][] = [
    [0, 1, 'user-message', 'code'],
    [1, 2, 'messages', 'note'],
    [2, 1, 'agent-output', 'code'],
    [1, 1, 'tool-started', 'code'],
    [1, 3, 'arguments', 'note'],
    [3, 1, 'tool-result', 'code'],
    [1, 2, 'messages', 'note'],
    [2, 1, 'agent-output', 'code'],
    [1, 1, 'run-stop', 'code'],
    [1, 0, 'the answer', 'note'],
  ];
  const y = (row: number): number => 84 + row * 38;
  const bottom = y(rows.length - 1) + 18;
  for (const [lane] of lanes.entries())
    picture.arrow(
      [
        [x(lane), 44],
        [x(lane), bottom],
      ],
      { isDashed: true, hasHead: false },
    );
  for (const [lane, [name, tone]] of lanes.entries())
    picture.box(x(lane) - 42, 12, 84, 32, [name], { tone, font: 'title' });
  for (const [row, [from, to, label, font]] of rows.entries()) {
    if (from === to) {
      picture.box(x(from) - 52, y(row) - 16, 104, 26, [label], { tone: 'log', font });
      continue;
    }
    const side = to > from ? 1 : -1;
    picture.arrow([
      [x(from), y(row)],
      [x(to) - side * 2, y(row)],
    ]);
    picture.text((x(from) + (Math.abs(to - from) > 1 ? x(from + side) : x(to))) / 2, y(row) - 6, label, {
      font,
      anchor: 'middle',
    });
  }
  return picture;
}

function drawApproval(): SvgPicture {
  const picture = new SvgPicture('An approval over a restart: the log connects two processes');
  picture.frame(12, 12, 214, 214, 'process 1', { isDashed: true });
  picture.frame(12, 286, 214, 262, 'process 2', { isDashed: true });
  picture.frame(252, 12, 156, 536, 'the log', { tone: 'log' });
  const steps: [y: number, lines: string[], tone: Tone][] = [
    [44, ['send()', 'Pay the rent.'], 'person'],
    [104, ['the model', 'calls transfer'], 'model'],
    [164, ['the call waits', 'The run is suspended.'], 'person'],
    [318, ['decide()', 'Ada approves.'], 'person'],
    [378, ['resume()', 'The tool runs once.'], 'tool'],
    [478, ['the model', 'answers'], 'model'],
  ];
  for (const [y, lines, tone] of steps) picture.box(26, y, 186, 48, lines, { tone });
  const entries: [y: number, entry: string, tone: Tone][] = [
    [54, 'user-message', 'person'],
    [114, 'agent-output', 'model'],
    [162, 'tool-suspended', 'person'],
    [192, 'run-suspended', 'log'],
    [328, 'decision', 'person'],
    [366, 'run-resumed', 'log'],
    [396, 'tool-started', 'tool'],
    [426, 'tool-result', 'tool'],
    [474, 'agent-output', 'model'],
    [504, 'run-stop', 'log'],
  ];
  for (const [y, entry, tone] of entries) picture.box(264, y, 132, 26, [entry], { tone, font: 'code' });
  for (const [from, to] of [
    [68, 67],
    [128, 127],
    [188, 175],
    [188, 205],
    [342, 341],
    [402, 379],
    [402, 409],
    [402, 439],
    [502, 487],
    [502, 517],
  ] as const)
    picture.arrow([
      [212, from],
      [262, to],
    ]);
  picture.text(119, 248, 'Hours or weeks pass.', { anchor: 'middle' });
  picture.text(119, 268, 'No process has to run.', { font: 'note', anchor: 'middle' });
  return picture;
}

function drawPermissions(): SvgPicture {
  const picture = new SvgPicture('The layers of permissions: the first layer that fits decides');
  picture.box(110, 12, 140, 32, ['a tool call'], { tone: 'model' });
  const layers: [lines: string[], outcome: string, tone: Tone][] = [
    [['unknown tool, or arguments', 'that do not fit the schema'], 'fails', 'refusal'],
    [['1  a deny rule fits,', 'or the tool is disabled'], 'deny', 'refusal'],
    [['2  mode plan, and the call', 'does more than read'], 'deny', 'refusal'],
    [['3  the call changes', 'a protected place'], 'ask', 'person'],
    [['4  an ask rule fits, a hook', 'asks, or needsApproval'], 'ask', 'person'],
    [['5  an allow rule fits,', 'or a hook allows'], 'allow', 'tool'],
    [['6  the mode decides;', 'reading here is allowed'], 'by mode', 'plain'],
  ];
  const y = (index: number): number => 66 + index * 68;
  for (const [index, [lines, outcome, tone]] of layers.entries()) {
    picture.box(60, y(index), 240, 48, lines, { tone });
    picture.box(330, y(index) + 9, 78, 30, [outcome], { tone, font: 'title' });
    picture.arrow([
      [180, index === 0 ? 44 : y(index) - 20],
      [180, y(index) - 1],
    ]);
    picture.arrow([
      [300, y(index) + 24],
      [328, y(index) + 24],
    ]);
  }
  const bottom = y(layers.length - 1) + 48;
  const outcomes: [x: number, title: string, lines: string[], tone: Tone][] = [
    [12, 'deny', ['The call fails', 'with denied.'], 'refusal'],
    [148, 'ask', ['The call waits', 'for a person.'], 'person'],
    [284, 'allow', ['The tool runs', 'at once.'], 'tool'],
  ];
  for (const [x, title, lines, tone] of outcomes)
    picture.box(x, bottom + 24, 124, 68, [title, ...lines], { tone, font: 'title' });
  return picture;
}

function drawDeployment(): SvgPicture {
  const picture = new SvgPicture('From one process to many: the same agent with five stores');
  const rows: [store: string, lines: string[], processes: string[], place: string, tone: Tone][] = [
    ['memoryStore()', ['Logs end with', 'the process.'], ['process'], 'its memory', 'plain'],
    ['jsonlStore()', ['Logs survive a restart.', 'One file for each.'], ['process'], 'a folder', 'log'],
    ['sqliteStore()', ['Lists are read', 'by an index.'], ['process'], 'one file', 'log'],
    ['postgresStore()', ['Any process answers', 'any request.'], ['process', 'process'], 'a database', 'tool'],
    [
      'serveAgent()',
      ['Another worker takes', 'over after a crash.'],
      ['worker', 'worker'],
      'a Restate server',
      'model',
    ],
  ];
  const y = (row: number): number => 16 + row * 108;
  for (const [row, [store, lines, processes, place, tone]] of rows.entries()) {
    picture.frame(12, y(row) - 4, 396, 92, '');
    picture.text(26, y(row) + 24, store, { font: 'code' });
    for (const [index, line] of lines.entries()) picture.text(26, y(row) + 48 + index * 17, line, { font: 'note' });
    const width = processes.length === 1 ? 188 : 90;
    for (const [index, name] of processes.entries()) {
      const x = 208 + index * 98;
      picture.box(x, y(row) + 6, width, 28, [name]);
      picture.arrow([
        [x + width / 2, y(row) + 34],
        [x + width / 2, y(row) + 49],
      ]);
    }
    picture.box(208, y(row) + 50, 188, 30, [place], { tone });
    if (row > 0)
      picture.arrow([
        [100, y(row) - 20],
        [100, y(row) - 5],
      ]);
  }
  return picture;
}

export const guidePictures: Record<string, SvgPicture> = {
  message: drawMessage(),
  approval: drawApproval(),
  permissions: drawPermissions(),
  deployment: drawDeployment(),
};
