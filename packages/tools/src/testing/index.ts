export { type Inventory, leftSince, takeInventory, waitUntilNothingIsLeft } from './inventory.ts';
export type { ToolContractCaseId, ToolUnderTest } from './subject.ts';
export { type ToolContractCase, type ToolContractOptions, toolContract } from './tool-contract.ts';
