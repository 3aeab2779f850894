import { ALL_CASES, testStops } from './stop-anywhere.ts';

testStops(ALL_CASES);
