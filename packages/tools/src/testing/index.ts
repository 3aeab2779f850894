// The contract every tool must keep.
export { toolContract, type ToolContractOptions, type ToolContractCase } from './tool-contract.ts';

// What a test left behind.
export { takeInventory, type Inventory, waitUntilNothingIsLeft } from './inventory.ts';
