"""The whole lambda as a simulation on the product's own rules: one seed is one exact history of a small world.

A topic with partitions, transactions and clocks that step back; an archive; speed with micro-batches, crashes and
generations; rebuilds side by side; readers. After every step the merged answer is compared with a naive recompute that
shares no code with the product. Every rule can be taken away, and then histories are found that differ.
"""
