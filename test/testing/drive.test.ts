import { describe, expect, it } from 'vitest';
import { chartCases, toolCallMachine, toolRoundMachine } from '../../machines/index.ts';
import { coverPaths, drive, type Invariant, transitionCoverage } from '../../src/testing/index.ts';

const { cases, projection, inputs } = chartCases.toolCall;
const [input] = inputs;
const paths = coverPaths(toolCallMachine, { input, cases, projection });
const [path] = paths;
if (!path) throw new Error('a chart has a path');

describe('drive', () => {
  it('returns the log of the chart and its final state', async () => {
    const { entries, finalState } = await drive(toolCallMachine, path, { input });
    expect(entries.map(({ type }) => type)).toEqual(['tool-started', 'tool-result']);
    expect(entries.map(({ seq }) => seq)).toEqual([0, 1]);
    expect(finalState).toMatchObject({ status: 'done', value: 'Done' });
  });

  it('calls every invariant at the start and after each step, and reports where one was broken', async () => {
    const seen: unknown[] = [];
    const watch: Invariant = (state) => void seen.push(state.value);
    await drive(toolCallMachine, path, { input, invariants: [watch] });
    expect(seen).toEqual([{ ExecuteTool: 'attempting' }, 'Done']);
    const never: Invariant = (state) => {
      if (state.value === 'Done') throw new Error('it is done');
    };
    await expect(drive(toolCallMachine, path, { input, invariants: [never] })).rejects.toThrow(
      /path 1: .*\(step 1, effect.done\): it is done/,
    );
  });

  it('rejects where the chart leaves the path, and names the step', async () => {
    const other = paths.at(-1);
    const steps = path.steps.map((step) => ({ ...step, state: other?.start?.state ?? step.state }));
    await expect(drive(toolCallMachine, { name: 'wrong', steps }, { input })).rejects.toThrow(
      /path wrong \(step 1, effect.done\): the state is "Done", the path says {"ExecuteTool":"attempting"}/,
    );
  });

  it('rejects an answer to what nobody asked', async () => {
    const event = { type: 'effect.done', id: '', value: { kind: 'committed' } };
    const steps = path.steps.map((step) => ({ ...step, event }));
    await expect(drive(toolCallMachine, { name: 'odd', steps }, { input })).rejects.toThrow(
      /nothing that is open takes .*committed.*; open are: r\/t1\/call\/0\/tool/,
    );
  });

  it('ends a child that stands in for a real one with the output of the path', async () => {
    const round = chartCases.toolRound;
    const [first] = round.inputs;
    for (const covering of coverPaths(toolRoundMachine, {
      input: first,
      cases: round.cases,
      projection: round.projection,
    })) {
      const { finalState } = await drive(toolRoundMachine, covering, { input: first });
      expect(finalState.status).toBe('done');
    }
  });
});

describe('transitionCoverage', () => {
  it('names what no path took, by state, event and target', async () => {
    const { observe, missing } = transitionCoverage(toolCallMachine);
    const all = missing().length;
    await drive(toolCallMachine, path, { input, inspect: observe });
    expect(missing().length).toBeLessThan(all);
    expect(missing()).toContainEqual({
      source: 'TOOL_CALL.BeforeToolExecute',
      event: 'effect.done',
      target: 'TOOL_CALL.Blocked',
    });
  });

  it('counts a chart with other implementations as the same chart', async () => {
    const provided = toolCallMachine.provide({ actions: { log: () => {} } });
    const { observe, missing } = transitionCoverage(toolCallMachine);
    for (const start of inputs) {
      for (const covering of coverPaths(provided, { input: start, cases, projection })) {
        await drive(provided, covering, { input: start, inspect: observe });
      }
    }
    expect(missing()).toEqual([]);
  });

  it('leaves other charts out', async () => {
    const { observe, missing } = transitionCoverage(toolRoundMachine);
    const all = missing();
    await drive(toolCallMachine, path, { input, inspect: observe });
    expect(missing()).toEqual(all);
  });
});
