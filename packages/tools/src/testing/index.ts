// The contract every tool must keep.
export { toolContract, type ToolContractOptions } from './tool-contract.ts';

// What a test left behind.
export { takeInventory, waitUntilNothingIsLeft } from './inventory.ts';
