// #region setup
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { costOf, createAgent, presets } from 'runchart';
import { codingTools, configuredPlugins, loadConfiguration, systemPrompt } from 'runchart/node';
import { scriptedModel } from 'runchart/testing';

// A project with instructions and a configuration, and an empty directory of the user.
const place = mkdtempSync(join(tmpdir(), 'shop-'));
const userDirectory = mkdtempSync(join(tmpdir(), 'user-'));
mkdirSync(join(place, '.git'));
mkdirSync(join(place, '.runchart'));
writeFileSync(join(place, 'AGENTS.md'), 'Prices are in cents.');
const wanted = { permissions: { deny: ['read(**/.env)'], allow: ['bash(*)'] }, limits: { turns: 20 } };
writeFileSync(join(place, '.runchart/config.json'), JSON.stringify(wanted));

// A script in place of a real model.
const usage = { inputTokens: 900, outputTokens: 20 };
const parts = [
  { type: 'text-delta', text: 'In cents.' },
  { type: 'finish', reason: 'stop', usage },
] as const;
const model = scriptedModel([{ parts }], { prices: { input: 3, output: 15 } });
// #endregion

// #region agent
const configuration = await loadConfiguration({ cwd: place, userDirectory });
const { rules, plugins } = configuredPlugins(configuration, { allow: ['bash(npm test *)'] });
const agent = createAgent({
  model,
  tools: codingTools(),
  plugins: [systemPrompt(), ...plugins],
  policies: configuration.limited(presets.coding),
  cwd: place,
});
// #endregion

// #region ask
console.log(configuration.ignored.map((each) => each.replace(place, '')).join());
console.log((await rules.explain('Read', { file_path: '.env' }, place)).by);
const conversation = await agent.open();
console.log(await conversation.send('Which unit do prices have?').text);
console.log(model.calls[0]?.system.includes('Prices are in cents.'));
// #endregion

// #region cost
const { total, models } = costOf(conversation.log());
console.log(total.costUsd, models.map(({ model, calls }) => `${model}: ${calls}`).join());
await agent.close();
// #endregion
