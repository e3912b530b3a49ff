package dev.freshet.operators.dissemination;

import dev.freshet.connectors.chunk.Route;

/**
 * What a chunk's changes have in common.
 *
 * @param table feature table
 * @param isCatchUp whether they bring a region what it has missed
 * @param plan number of the plan that the route is from
 * @param stripe index of the tree in the plan
 * @param route from the next hop on
 * @param lane partition of the next hop's inbox, modulo their number; shards are dealt to lanes
 */
record LaneId(String table, boolean isCatchUp, long plan, int stripe, Route route, int lane) {}
