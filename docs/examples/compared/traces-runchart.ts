/** Traces of a run in OpenTelemetry, without contents. The program has registered a provider. */
import { createAgent } from 'runchart';
import { openai } from 'runchart/openai';
import { openTelemetry } from 'runchart/otel';

const agent = createAgent({ model: openai('gpt-5.2'), plugins: [openTelemetry({ agentName: 'librarian' })] });
const { text } = await agent.run('Which books have we on statecharts?');
console.log(text);
