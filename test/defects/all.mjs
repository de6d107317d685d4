/**
 * All planted defects. Invariant: each has an id, a sentence that describes it, and a witness. The witness is the test
 * file that must fail, or simulated lives if there is no such file.
 */
import { defects as ofTheSimulation } from '../simulation/defects.mjs';
import { charts } from './charts.mjs';
import { edges } from './edges.mjs';
import { equipment } from './equipment.mjs';
import { extensions } from './extensions.mjs';
import { models } from './models.mjs';
import { outside } from './outside.mjs';
import { permissions } from './permissions.mjs';
import { printed } from './printed.mjs';
import { released } from './released.mjs';
import { runtime } from './runtime.mjs';
import { stores } from './stores.mjs';
import { subAgents } from './subAgents.mjs';
import { tools } from './tools.mjs';
import { views } from './views.mjs';

export const defects = [
  ...ofTheSimulation,
  ...charts,
  ...runtime,
  ...models,
  ...tools,
  ...stores,
  ...subAgents,
  ...views,
  ...outside,
  ...permissions,
  ...released,
  ...printed,
  ...equipment,
  ...edges,
  ...extensions,
];

const ids = new Set(defects.map(({ id }) => id));
if (ids.size < defects.length) throw new Error('two defects have one name');
