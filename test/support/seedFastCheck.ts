/**
 * Runs before each test file. The sources determine the seed of fast-check, as they determine every other random value.
 */
import { configureGlobal, readConfigureGlobal } from 'fast-check';
import { sourceSeed } from './sourceSeed.ts';

configureGlobal({ ...readConfigureGlobal(), seed: sourceSeed() });
