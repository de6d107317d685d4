/**
 * One agent, one process: prints as JSON the CPU seconds of the first generation of its cases, and the number of cases. Run it in a directory
 * without `node_modules`, so that no paths are kept from an earlier run.
 */
import { agentPaths } from '../../dist/src/testing/index.js';
import { pathAgents } from './pathAgents.mjs';

const { agent, options } = pathAgents[process.argv[2]];
const before = process.cpuUsage();
const { cases, report } = await agentPaths(agent, options);
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ cpuSeconds: (user + system) / 1e6, cases: cases.length, closer: report().closer ?? {} }));
