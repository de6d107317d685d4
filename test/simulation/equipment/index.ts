/**
 * Equipment for a simulated life besides the agent's own tools, plugins and sub-agents: permissions, hooks, an MCP
 * server, an observer. Invariant: half of the lives have none of it, because each takes time.
 */
import type { SimulationReport } from '../../../src/testing/simulation/simulate.ts';
import { type CheckedOptions, type Equip, simulate } from '../checkedLife.ts';
import type { Equipment } from './equipment.ts';
import { ScriptedMcp } from './scriptedMcp.ts';
import { Guards } from './simulatedGuards.ts';
import { Inspection } from './simulatedInspector.ts';

const KINDS = ['permissions', 'hooks', 'mcp', 'inspector'] as const;

const equip: Equip = async ({ world, store }) => {
  const { tape } = world;
  if (tape.next(2) === 0) return [];
  const has = new Set(KINDS.filter(() => tape.next(2) === 1));
  for (const kind of has) world.count(`has-${kind}`);
  const equipment: Equipment[] = [];
  if (has.has('permissions') || has.has('hooks'))
    equipment.push(new Guards(world, { permissions: has.has('permissions'), hooks: has.has('hooks') }));
  if (has.has('mcp')) equipment.push(await ScriptedMcp.started(world, store));
  if (has.has('inspector')) equipment.push(new Inspection(world, store));
  return equipment;
};

/** Runs one life of an agent with any of these. */
export const simulateEquipped = (options: CheckedOptions): Promise<SimulationReport> => simulate(options, equip);
