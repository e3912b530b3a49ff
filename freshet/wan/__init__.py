"""A WAN between regions on one machine: a broker and a Redis for each region, and slow links."""
