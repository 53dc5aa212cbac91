package sim

import (
	"context"
	"errors"
	"fmt"
)

// startDriver starts the driver of a host agent, and returns its report, which names its process.
// If the agent is requested to end meanwhile, the driver is forced: no guest has begun to run.
func (m *vmProcess) startDriver(ctx, requested context.Context) (report, error) {
	child, said, err := m.Driver.start(m.host)
	if err != nil {
		return report{}, err
	}
	defer said.Close() //nolint:errcheck // it is only read
	id, told, err := firstReport(ctx, requested, child, said)
	if err == nil && told.Error != "" {
		m.taken, err = told.Taken, errors.New(told.Error)
	} else if err != nil {
		err = errors.Join(fmt.Errorf("the driver did not come up: %w", err), child.Force())
	}
	if err != nil {
		_ = child.Wait(ctx) //nolint:errcheck // it is only collected
		return report{}, err
	}
	told.Process = &id
	m.driver = make(chan error, 1)
	ended := m.driver
	m.serves.Go(func() { ended <- child.Wait(ctx) })
	return told, nil
}

// pass asks the driver of a host agent to power down.
func (m *vmProcess) pass(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	m.say("asks its driver to power down")
	if _, err := ask(ctx, m.Driver.Orders.Socket, question{Ask: askEnd}); err != nil {
		m.say("cannot ask its driver: " + err.Error())
	}
}
