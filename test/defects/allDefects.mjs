/**
 * All planted defects. Invariant: each has an id, a sentence that describes it, and a witness. The witness is the test
 * file that must fail, or simulated lives if there is no such file.
 */
import { defects as ofTheSimulation } from '../simulation/lifeDefects.mjs';
import { charts } from './chartDefects.mjs';
import { edges } from './edgeDefects.mjs';
import { equipment } from './equipmentDefects.mjs';
import { extensions } from './extensionDefects.mjs';
import { released } from './leakDefects.mjs';
import { models } from './modelDefects.mjs';
import { printed } from './outputDefects.mjs';
import { permissions } from './permissionDefects.mjs';
import { outside } from './protocolDefects.mjs';
import { runtime } from './runtimeDefects.mjs';
import { shared } from './sharedDefects.mjs';
import { stores } from './storeDefects.mjs';
import { subAgents } from './subAgentDefects.mjs';
import { tools } from './toolDefects.mjs';
import { views } from './viewDefects.mjs';

export const defects = [
  ...ofTheSimulation,
  ...charts,
  ...runtime,
  ...models,
  ...tools,
  ...stores,
  ...shared,
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
